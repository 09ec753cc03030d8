"""The server's proof that a request is its own: TLS proves to a site who carries its messages, not who wrote them.

Whoever reaches Flower's port can hand in messages to sites. So each request carries the server's certificate and a
signature by its key, and a site answers only what its own authority vouches for.
"""

from __future__ import annotations

import datetime
from pathlib import Path

from fedhedge.deployment import masking_crypto
from fedhedge.deployment.extra import needed
from fedhedge.deployment.keys import load_certificate, load_server_key
from fedhedge.deployment.keys_certificates import pem
from fedhedge.deployment.parcel import Parcel, Rejected

CERTIFICATE, SIGNATURE = "certificate", "signature"
FORGED = "not a request of this federation's server"


class Signer:
    """Signs requests with server.key and server.pem, the server's key and certificate, in a folder.

    Raises InvalidInput.
    """

    def __init__(self, keys: Path) -> None:
        self._key = load_server_key(keys / "server.key")
        self._certificate = pem(load_certificate(keys / "server.pem")).decode("ascii")

    def __call__(self, request: Parcel) -> Parcel:
        """The request with its proof among the facts."""
        about = dict(request.about) | {CERTIFICATE: self._certificate}
        signature = masking_crypto.sign(self._key, _text(Parcel(request.kind, about, request.arrays)))
        return Parcel(request.kind, about | {SIGNATURE: signature.hex()}, request.arrays)


class Verifier:
    """Checks requests against the certificate of the authority that a site trusts. Raises InvalidInput."""

    def __init__(self, authority: Path) -> None:
        self._authority = load_certificate(authority)

    def __call__(self, request: Parcel) -> Parcel:
        """The request without its proof. Raises Rejected unless the proof holds today."""
        about = dict(request.about)
        try:
            signature = bytes.fromhex(about.pop(SIGNATURE))
            certificate = needed("cryptography.x509").load_pem_x509_certificate(about[CERTIFICATE].encode("ascii"))
            certificate.verify_directly_issued_by(self._authority)
            now = datetime.datetime.now(datetime.UTC)
            if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
                raise ValueError("a certificate of another time")
            text = _text(Parcel(request.kind, about, request.arrays))
            masking_crypto.verify(certificate.public_key(), signature, text)
        except Exception:
            # A forger may send anything; all of it comes to the same.
            raise Rejected(FORGED) from None
        del about[CERTIFICATE]
        return Parcel(request.kind, about, request.arrays)


def _text(request: Parcel) -> bytes:
    return "\n".join(["fedhedge request", request.kind, request.digest(), request.text()]).encode()

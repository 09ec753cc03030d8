"""Certificates of X.509 for the encrypted link: an authority of one's own, and the server's under its names."""

from __future__ import annotations

import datetime
import ipaddress
import re
from collections.abc import Sequence
from typing import Any

from fedhedge import checks
from fedhedge.deployment.extra import needed

AUTHORITY_DAYS, SERVER_DAYS = 3650, 825
LOCAL = ("localhost", "127.0.0.1")
# Clocks of the machines may differ by this much.
_CLOCKS = datetime.timedelta(hours=1)
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
# The last part of a name is no number, so that a mistyped address is not taken for one.
_HOST = re.compile(rf"(?=.{{1,253}}$)(\*\.)?({_LABEL}\.)*(?!\d+$){_LABEL}")


def alternative_names(hosts: Sequence[str]) -> list[Any]:
    """Host names and addresses as a certificate holds them. Raises InvalidInput naming the one that is neither."""
    x509 = needed("cryptography.x509")
    if isinstance(hosts, str) or not isinstance(hosts, Sequence) or not hosts:
        raise checks.InvalidInput("hosts", hosts, "a list of at least one host name or address")
    found = []
    for place, host in enumerate(hosts):
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(str(host))))
        except ValueError:
            if not isinstance(host, str) or not _HOST.fullmatch(host):
                raise checks.InvalidInput(f"hosts[{place}]", host, "a host name or an IP address") from None
            found.append(x509.DNSName(host))
    return found


def new_key() -> Any:
    """A fresh private key: ECDSA on P-384."""
    ec = needed("cryptography.hazmat.primitives.asymmetric.ec")
    return ec.generate_private_key(ec.SECP384R1())


def authority(key: Any) -> Any:
    """A certificate that the key signs for itself, with the right to sign others but no further authority."""
    x509 = needed("cryptography.x509")
    serial = x509.random_serial_number()
    # The name tells authorities apart that were made for different federations.
    name = _name(f"fedhedge authority {serial % 2**32:08x}")
    builder = _certificate(name, name, key.public_key(), serial, AUTHORITY_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(key_cert_sign=True, crl_sign=True), critical=True)
    return _signed(builder, key, key)


def server(key: Any, authority_key: Any, authority: Any, places: Sequence[Any]) -> Any:
    """A certificate of the key, signed by the authority, for a server under `places` and for nothing else."""
    x509 = needed("cryptography.x509")
    serial = x509.random_serial_number()
    builder = _certificate(_name("fedhedge server"), authority.subject, key.public_key(), serial, SERVER_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(digital_signature=True), critical=True)
    server_only = x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.SERVER_AUTH])
    builder = builder.add_extension(server_only, critical=False)
    builder = builder.add_extension(x509.SubjectAlternativeName(places), critical=False)
    return _signed(builder, key, authority_key)


def _certificate(subject: Any, issuer: Any, public: Any, serial: int, days: int) -> Any:
    x509 = needed("cryptography.x509")
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(public)
    return (
        builder.serial_number(serial)
        .not_valid_before(now - _CLOCKS)
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _signed(builder: Any, own: Any, authority_key: Any) -> Any:
    x509, hashes = needed("cryptography.x509"), needed("cryptography.hazmat.primitives.hashes")
    own_id = x509.SubjectKeyIdentifier.from_public_key(own.public_key())
    issuer_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    builder = builder.add_extension(own_id, critical=False).add_extension(issuer_id, critical=False)
    return builder.sign(authority_key, hashes.SHA384())


def _usage(**granted: bool) -> Any:
    names = "digital_signature content_commitment key_encipherment data_encipherment key_agreement key_cert_sign "
    names += "crl_sign encipher_only decipher_only"
    return needed("cryptography.x509").KeyUsage(**{name: granted.get(name, False) for name in names.split()})


def _name(text: str) -> Any:
    x509 = needed("cryptography.x509")
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def pem(certificate: Any) -> bytes:
    """A certificate as text."""
    encoding = needed("cryptography.hazmat.primitives.serialization").Encoding
    return bytes(certificate.public_bytes(encoding.PEM))


def pem_key(key: Any) -> bytes:
    """A private key as text, without a password."""
    form = needed("cryptography.hazmat.primitives.serialization")
    return bytes(key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()))

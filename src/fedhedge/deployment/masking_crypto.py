"""The primitives of masking, all of them the cryptography package's: X25519, HKDF, ChaCha20 and its sealed form."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from fedhedge.deployment.extra import needed
from fedhedge.deployment.masking_numbers import Quantiser, Residues

KEY_BYTES = 32
_NONCE_BYTES = 12
_DOMAIN = b"fedhedge masking 1 "


class Forged(ValueError):
    """A sealed text or a signature that its claimed sender did not make for this reader and session."""


def new_private() -> bytes:
    """A private X25519 key, 32 bytes."""
    return bytes(_x25519().X25519PrivateKey.generate().private_bytes_raw())


def public_of(private: bytes) -> bytes:
    """The public key of a private one, 32 bytes."""
    return bytes(_x25519().X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw())


def shared_key(private: bytes, public: bytes, purpose: bytes, session: bytes) -> bytes:
    """HKDF-SHA256 of the X25519 agreement, bound to a purpose and a session, 32 bytes.

    Raises Forged for a public key of low order, with which anyone could know the result.
    """
    x25519 = _x25519()
    try:
        peer = x25519.X25519PublicKey.from_public_bytes(public)
        agreed = x25519.X25519PrivateKey.from_private_bytes(private).exchange(peer)
    except ValueError:
        raise Forged("a public key with which no secret can be agreed") from None
    hashes = needed("cryptography.hazmat.primitives.hashes")
    hkdf = needed("cryptography.hazmat.primitives.kdf.hkdf").HKDF
    return bytes(hkdf(hashes.SHA256(), KEY_BYTES, salt=session, info=_DOMAIN + purpose).derive(agreed))


def stream(key: bytes, length: int, quantiser: Quantiser) -> Residues:
    """`length` pseudo-random residues: the ChaCha20 key stream from block 0, nonce 0. A key is used for one stream."""
    ciphers = needed("cryptography.hazmat.primitives.ciphers")
    cipher = ciphers.Cipher(ciphers.algorithms.ChaCha20(key, bytes(16)), mode=None)
    content = cipher.encryptor().update(bytes(length * quantiser.dtype.itemsize))
    return np.frombuffer(content, dtype=quantiser.dtype)


def seal(key: bytes, text: bytes, about: bytes) -> bytes:
    """ChaCha20-Poly1305 with a random nonce in front; `about` is authenticated with it."""
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + bytes(_aead(key).encrypt(nonce, text, about))


def unseal(key: bytes, sealed: bytes, about: bytes) -> bytes:
    """The text of `seal`. Raises Forged where anything differs."""
    try:
        return bytes(_aead(key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], about))
    except (needed("cryptography.exceptions").InvalidTag, ValueError):
        raise Forged("a sealed text that does not open") from None


def sign(private: Any, text: bytes) -> bytes:
    """ECDSA with SHA-384 by a site's key."""
    return bytes(private.sign(_DOMAIN + text, _ecdsa()))


def verify(public: Any, signature: bytes, text: bytes) -> None:
    """Raises Forged unless `sign` made the signature with the private key of `public`."""
    try:
        public.verify(signature, _DOMAIN + text, _ecdsa())
    except needed("cryptography.exceptions").InvalidSignature:
        raise Forged("a signature that is not of the claimed sender") from None


def _x25519() -> Any:
    return needed("cryptography.hazmat.primitives.asymmetric.x25519")


def _aead(key: bytes) -> Any:
    return needed("cryptography.hazmat.primitives.ciphers.aead").ChaCha20Poly1305(key)


def _ecdsa() -> Any:
    hashes = needed("cryptography.hazmat.primitives.hashes")
    return needed("cryptography.hazmat.primitives.asymmetric.ec").ECDSA(hashes.SHA384())

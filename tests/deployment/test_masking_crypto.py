"""The primitives against published values, and sealed texts against changes."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="cryptography (extra `flower`) is not installed")
from fedhedge.deployment.masking_crypto import Forged, new_private, public_of, seal, shared_key, stream, unseal
from fedhedge.deployment.masking_numbers import Quantiser


def test_masks_are_the_key_stream_of_rfc_8439() -> None:
    """Appendix A.1, test vector 1: key, nonce and counter zero."""
    published = (
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
    )
    for bits, length in ((32, 16), (64, 8)):
        assert stream(bytes(32), length, Quantiser(bits)).tobytes().hex() == published


def test_public_keys_are_those_of_rfc_7748() -> None:
    """Section 5.2: the first iteration, X25519(9, 9)."""
    published = "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079"
    assert public_of(b"\x09" + bytes(31)).hex() == published


def test_two_sides_agree_and_purpose_and_session_separate() -> None:
    first, second = new_private(), new_private()
    key = shared_key(first, public_of(second), b"mask", b"session")
    assert key == shared_key(second, public_of(first), b"mask", b"session")
    others = [
        shared_key(first, public_of(second), b"seal", b"session"),
        shared_key(first, public_of(second), b"mask", b"another"),
        shared_key(first, public_of(new_private()), b"mask", b"session"),
    ]
    assert len({key, *others}) == 4
    with pytest.raises(Forged, match="no secret"):
        shared_key(first, bytes(32), b"mask", b"session")


def test_masks_of_different_keys_are_unlike() -> None:
    first, second = (stream(new_private(), 1000, Quantiser()) for _ in range(2))
    assert not np.any(first == second)  # equal anywhere: 5e-17


def test_sealed_texts() -> None:
    key = new_private()
    sealed = seal(key, b"share", b"about")
    assert unseal(key, sealed, b"about") == b"share"
    assert seal(key, b"share", b"about") != sealed
    for wrong in (sealed[:-1], sealed + b"x", b"", sealed[1:], bytes([sealed[0] ^ 1]) + sealed[1:]):
        with pytest.raises(Forged):
            unseal(key, wrong, b"about")
    with pytest.raises(Forged):
        unseal(key, sealed, b"other")
    with pytest.raises(Forged):
        unseal(new_private(), sealed, b"about")

"""What two parties of a masked sum have to work out alike: keys, the masks of pairs, and the texts that are signed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedhedge import checks
from fedhedge.deployment import masking_crypto as crypto
from fedhedge.deployment.masking_field import PRIME, SHARE_BYTES
from fedhedge.deployment.masking_messages import BadMessage, Session, raw, table
from fedhedge.deployment.masking_numbers import Residues


@dataclass(frozen=True)
class Signing:
    """A site's own private key, and the public keys of all sites as it got them from elsewhere than the server."""

    private: Any
    roster: Mapping[str, Any]


def check_roster(session: Session, roster: Mapping[str, Any]) -> None:
    """Raises InvalidInput unless there is a public key of every client of the session."""
    missing = sorted(set(session.clients) - set(roster))
    if missing:
        raise checks.InvalidInput("roster", missing, "a public key of every client of the session", "missing")


def key_body(publics: Sequence[bytes]) -> dict[str, Any]:
    """A client's two public keys, for sealing and for masks, as a message holds them."""
    return {"seal": publics[0].hex(), "mask": publics[1].hex()}


def read_keys(body: object, name: str) -> list[bytes]:
    """The two public keys of client `name` from a message. Raises BadMessage."""
    found = table(body, f"keys of {name!r}")
    return [raw(found.get(key), crypto.KEY_BYTES, f"keys of {name!r}") for key in ("seal", "mask")]


def check_key(public: bytes, name: str) -> None:
    """Raises BadMessage for a public key with which no secret can be agreed."""
    try:
        crypto.shared_key(crypto.new_private(), public, b"check", b"")
    except crypto.Forged as error:
        raise BadMessage(f"keys of {name!r}: {error}") from None


def key_text(session: Session, name: str, publics: Sequence[bytes]) -> bytes:
    """What a client signs of its keys."""
    return b"keys " + session.digest + b"".join(publics) + name.encode()


def survivors_text(session: Session, survivors: Sequence[str]) -> bytes:
    """What a client signs of the list of survivors."""
    return b"survivors " + session.digest + json.dumps(list(survivors)).encode()


def check_signature(roster: Mapping[str, Any], name: str, signature: object, text: bytes) -> None:
    """Raises BadMessage unless client `name` signed the text."""
    content = raw(signature, None, f"signature of {name!r}")
    try:
        crypto.verify(roster[name], content, text)
    except crypto.Forged as error:
        raise BadMessage(f"signature of {name!r}: {error}") from None


def sealing_key(session: Session, private: bytes, public: bytes, sender: str, reader: str) -> bytes:
    """The key of what `sender` seals for `reader`, the same on both sides. Raises BadMessage."""
    return _shared(session, private, public, b"seal" + session.between(sender, reader), f"{sender!r} and {reader!r}")


def pair_mask(session: Session, private: bytes, own: str, public: bytes, other: str) -> Residues:
    """The mask that `own` adds with `other`: PRG(k) where it comes first in the session, else -PRG(k) mod 2^bits.

    residues[length]; what the two add cancels. Raises BadMessage for a key that agrees on nothing.
    """
    first, second = sorted((own, other))
    key = _shared(session, private, public, b"mask" + session.between(first, second), f"{own!r} and {other!r}")
    mask = crypto.stream(key, session.length, session.quantiser)
    return mask if own == first else -mask


def check_share(share: bytes, what: str) -> int:
    """An element of the field from its bytes. Raises BadMessage."""
    value = int.from_bytes(share, "big")
    if len(share) != SHARE_BYTES or value >= PRIME:
        raise BadMessage(f"{what}: not a share")
    return value


def _shared(session: Session, private: bytes, public: bytes, purpose: bytes, who: str) -> bytes:
    try:
        return crypto.shared_key(private, public, purpose, session.digest)
    except crypto.Forged as error:
        raise BadMessage(f"keys of {who}: {error}") from None

"""The server's side of a masked sum: it relays, adds up, and learns the sum of the survivors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedhedge.deployment import masking_crypto as crypto
from fedhedge.deployment.masking_field import SHARE_BYTES, recover
from fedhedge.deployment.masking_messages import (
    AGREED,
    KEYS,
    MASKED,
    RELAY,
    REVEALED,
    ROSTER,
    SERVER,
    SHARES,
    SURVIVORS,
    UNMASK,
    Aborted,
    BadMessage,
    Session,
    raw,
    table,
)
from fedhedge.deployment.masking_numbers import Residues
from fedhedge.deployment.masking_pairs import (
    check_key,
    check_roster,
    check_share,
    check_signature,
    key_body,
    key_text,
    pair_mask,
    read_keys,
    survivors_text,
)
from fedhedge.privacy.noise import FloatArray

Outgoing = dict[str, bytes]
_WHAT = {
    KEYS: "clients with keys",
    SHARES: "clients with shares",
    MASKED: "masked uploads",
    AGREED: "survivors that signed",
    REVEALED: "survivors that revealed shares",
}


@dataclass(frozen=True)
class Total:
    """values: float64[length], the exact sum of the quantised uploads of `survivors`."""

    values: FloatArray
    survivors: tuple[str, ...]

    @property
    def mean(self) -> FloatArray:
        """The uniform average over the survivors."""
        return np.asarray(self.values / len(self.survivors))


class MaskingServer:
    """The server of one `Session`.

    Ask every client to advertise; hand each answer to `receive`; when all came or time is up, `advance`, which gives
    the next message for each client that is still in. Trips: keys, shares, masked, (agreed, if signed,) revealed; then
    `advance` gives nothing more and `total` is there. Whoever misses a trip is out of the later ones.

    `receive` raises BadMessage, and the session goes on without that answer. `advance` raises Aborted where fewer than
    the threshold are left, or where what they revealed contradicts itself; no sum is known then, and the session is
    over. roster: the public keys of all clients, in a signed session; raises InvalidInput where it is not complete.
    """

    def __init__(self, session: Session, roster: Mapping[str, Any] | None = None) -> None:
        self.session, self._roster = session, {} if roster is None else roster
        if session.signed:
            check_roster(session, self._roster)
        self.trip = KEYS
        self._asked = session.clients
        self._answers: dict[str, Any] = {}
        self._keys: dict[str, Any] = {}
        self._shared: tuple[str, ...] = ()
        self._survivors: tuple[str, ...] = ()
        self._uploads: dict[str, Residues] = {}
        self._total: Total | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        """Clients whose answer to this trip has not come."""
        return tuple(name for name in self._asked if name not in self._answers)

    def receive(self, sender: str, message: bytes) -> None:
        """Take one answer of this trip. Raises BadMessage."""
        if sender not in self._asked:
            raise BadMessage(f"message of client {sender!r}: it is not, or no longer, part of this session")
        body, payload = self.session.unpack(message, self.trip, sender)
        if sender in self._answers:
            raise BadMessage(f"message of client {sender!r}: its {self.trip} are here already")
        read = {KEYS: self._read_keys, SHARES: self._read_shares, AGREED: self._read_agreed}
        if self.trip == MASKED:
            self._answers[sender] = self._read_upload(sender, payload)
        elif self.trip == REVEALED:
            self._answers[sender] = self._read_revealed(sender, body)
        else:
            self._answers[sender] = read[self.trip](sender, body)

    def advance(self) -> Outgoing:
        """End this trip; the messages of the next one by client. Raises Aborted."""
        present = tuple(name for name in self._asked if name in self._answers)
        try:
            self.session.enough(present, _WHAT[self.trip])
            answers, trip = self._answers, self.trip
            self._answers, self._asked = {}, present
            return self._next(trip, answers, present)
        except Aborted:
            self.trip, self._asked, self._answers, self._uploads = "over", (), {}, {}
            raise

    @property
    def total(self) -> Total:
        """The sum, once the last trip has ended. Raises Aborted before."""
        if self._total is None:
            raise Aborted("the session has not come to its end")
        return self._total

    def _next(self, trip: str, answers: Mapping[str, Any], present: tuple[str, ...]) -> Outgoing:
        session = self.session
        if trip == KEYS:
            self._keys, self.trip = dict(answers), SHARES
            return self._same(ROSTER, {"keys": self._keys})
        if trip == SHARES:
            self._shared, self.trip = present, MASKED
            return {
                reader: session.pack(RELAY, SERVER, {"sealed": {s: answers[s][reader] for s in present if s != reader}})
                for reader in present
            }
        if trip == MASKED:
            self._survivors, self._uploads = present, dict(answers)
            self.trip = AGREED if session.signed else REVEALED
            return self._same(SURVIVORS if session.signed else UNMASK, {"survivors": list(present)})
        if trip == AGREED:
            self.trip = REVEALED
            return self._same(UNMASK, {"survivors": list(self._survivors), "signatures": dict(answers)})
        self._total = Total(session.quantiser.decode(self._sum(answers)), self._survivors)
        self.trip, self._asked, self._uploads = "over", (), {}
        return {}

    def _same(self, kind: str, body: Mapping[str, Any]) -> Outgoing:
        message = self.session.pack(kind, SERVER, body)
        return dict.fromkeys(self._asked, message)

    def _sum(self, answers: Mapping[str, Mapping[str, Mapping[str, int]]]) -> Residues:
        session = self.session
        total = np.zeros(session.length, session.quantiser.dtype)
        for name in self._survivors:
            seed = self._secret(answers, "seeds", name)
            total = total + self._uploads[name] - crypto.stream(seed, session.length, session.quantiser)
        for lost in (name for name in self._shared if name not in self._survivors):
            private = self._secret(answers, "keys", lost)
            if crypto.public_of(private) != read_keys(self._keys[lost], lost)[1]:
                raise Aborted(f"the shares of the mask key of {lost!r} do not give the key that it advertised")
            for name in self._survivors:
                # What the lost one would have added, and so cancelled.
                total = total + pair_mask(session, private, lost, read_keys(self._keys[name], name)[1], name)
        return total

    def _secret(self, answers: Mapping[str, Mapping[str, Mapping[str, int]]], kind: str, of: str) -> bytes:
        shares = {self.session.place(name): answer[kind][of] for name, answer in answers.items()}
        value = recover(shares, self.session.threshold)
        if value is None or value >= 2 ** (8 * crypto.KEY_BYTES):
            raise Aborted(f"the shares of the {kind} of {of!r} contradict each other")
        return value.to_bytes(crypto.KEY_BYTES, "big")

    def _read_keys(self, sender: str, body: dict[str, Any]) -> dict[str, Any]:
        publics = read_keys(body, sender)
        for public in publics:
            check_key(public, sender)
        if not self.session.signed:
            return key_body(publics)
        check_signature(self._roster, sender, body.get("signature"), key_text(self.session, sender, publics))
        return {**key_body(publics), "signature": body["signature"]}

    def _read_shares(self, sender: str, body: dict[str, Any]) -> dict[str, str]:
        sealed = table(body.get("sealed"), f"shares of {sender!r}")
        if set(sealed) != set(self._asked) - {sender}:
            raise BadMessage(f"shares of {sender!r}: not one for each other client of the roster")
        for reader, text in sealed.items():
            raw(text, None, f"share of {sender!r} for {reader!r}")
        return sealed

    def _read_upload(self, sender: str, payload: bytes) -> Residues:
        dtype, length = self.session.quantiser.dtype, self.session.length
        if len(payload) != length * dtype.itemsize:
            raise BadMessage(f"upload of {sender!r}: {len(payload)} bytes, not {length * dtype.itemsize}")
        return np.frombuffer(payload, dtype=dtype)

    def _read_agreed(self, sender: str, body: dict[str, Any]) -> str:
        signature = raw(body.get("signature"), None, f"signature of {sender!r}").hex()
        check_signature(self._roster, sender, signature, survivors_text(self.session, self._survivors))
        return signature

    def _read_revealed(self, sender: str, body: dict[str, Any]) -> dict[str, dict[str, int]]:
        lost = [name for name in self._shared if name not in self._survivors]
        found = {}
        for kind, wanted in (("seeds", self._survivors), ("keys", lost)):
            what = f"{kind} revealed by {sender!r}"
            shares = table(body.get(kind), what)
            if set(shares) != set(wanted):
                raise BadMessage(f"{what}: not those that were asked for")
            found[kind] = {name: check_share(raw(shares[name], SHARE_BYTES, what), what) for name in wanted}
        return found

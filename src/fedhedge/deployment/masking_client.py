"""A client's side of a masked sum: each step once, in order, and never both secrets of anyone."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedhedge import checks
from fedhedge.deployment import masking_crypto as crypto
from fedhedge.deployment.masking_field import SHARE_BYTES, split
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
    BadMessage,
    Session,
    raw,
    table,
)
from fedhedge.deployment.masking_pairs import (
    Signing,
    check_roster,
    check_share,
    check_signature,
    key_body,
    key_text,
    pair_mask,
    read_keys,
    sealing_key,
    survivors_text,
)
from fedhedge.privacy.noise import FloatArray


@dataclass
class _State:
    """All that a client keeps between trips; bytes throughout, so that it can be stored."""

    step: str = "advertise"
    seal_private: bytes = b""
    mask_private: bytes = b""
    seed: bytes = b""
    publics: dict[str, list[bytes]] = field(default_factory=dict)
    own: bytes = b""
    shares: dict[str, bytes] = field(default_factory=dict)
    agreed: list[str] = field(default_factory=list)


class MaskingClient:
    """One client of one `Session`. Its messages are the answers to the server's, trip by trip.

    advertise() -> keys;  share(roster) -> shares;  mask(relay, values) -> masked upload;
    in signed sessions agree(survivors) -> agreed;  unmask(request) -> revealed.

    A step can be taken once. A message that is refused changes nothing, so that the right one can still come; a step
    that was answered is over, and asking again is refused, whatever is asked: two uploads under one mask would give
    away their difference, and two lists of survivors could open one client's upload. To send an answer again, send
    the same bytes again.

    signing: needed in signed sessions. Raises InvalidInput; its steps raise BadMessage and Aborted.
    """

    def __init__(self, session: Session, name: str, signing: Signing | None = None) -> None:
        self.session, self.name = session, checks.one_of("name", name, session.clients)
        if (signing is not None) != session.signed:
            raise checks.InvalidInput("signing", signing, "keys in a signed session, and nothing in one that is not")
        if signing is not None:
            check_roster(session, signing.roster)
        self._signing = signing
        self._state = _State()

    @property
    def step(self) -> str:
        """The step that comes next: "advertise", "share", "mask", "agree", "unmask", or "over"."""
        return self._state.step

    def store(self) -> bytes:
        """The state as JSON, to go on in another process. It holds secrets: keep it as private as the rows.

        Store it *before* sending an answer, put no older one back, and delete it when the session is over.
        """
        return json.dumps(_texts(vars(self._state))).encode()

    @classmethod
    def restore(cls, content: bytes, session: Session, name: str, signing: Signing | None = None) -> MaskingClient:
        """The client as it was at `store`."""
        client = cls(session, name, signing)
        client._state = _State(**_from_texts(json.loads(content)))
        return client

    def advertise(self) -> bytes:
        """Fresh public keys: one for sealing shares, one for masks."""
        self._due("advertise")
        seal_private, mask_private = crypto.new_private(), crypto.new_private()
        publics = [crypto.public_of(seal_private), crypto.public_of(mask_private)]
        body = key_body(publics)
        if self._signing is not None:
            body["signature"] = crypto.sign(self._signing.private, key_text(self.session, self.name, publics)).hex()
        self._state = _State("share", seal_private, mask_private, publics={self.name: publics})
        return self.session.pack(KEYS, self.name, body)

    def share(self, message: bytes) -> bytes:
        """Shares of the own mask key and of the own seed, sealed for each client of the roster."""
        self._due("share")
        session, state = self.session, self._state
        body, _ = session.unpack(message, ROSTER, SERVER)
        found = table(body.get("keys"), "roster")
        present = session.names(found, "roster")
        session.enough(present, "clients with keys")
        publics = {name: read_keys(found[name], name) for name in present}
        if self._signing is not None:
            for name in present:
                text = key_text(session, name, publics[name])
                check_signature(self._signing.roster, name, found[name].get("signature"), text)
        if publics.get(self.name) != state.publics[self.name]:
            raise BadMessage("roster: without this client's own keys, or with others in their place")
        if len({key for pair in publics.values() for key in pair}) != 2 * len(publics):
            raise BadMessage("roster: one key stands for two")
        seed = os.urandom(crypto.KEY_BYTES)
        halves = [
            split(int.from_bytes(secret, "big"), len(session.clients), session.threshold)
            for secret in (state.mask_private, seed)
        ]
        parts = {
            name: b"".join(half[session.place(name) - 1].to_bytes(SHARE_BYTES, "big") for half in halves)
            for name in present
        }
        sealed = {}
        for name in present:
            if name != self.name:
                key = sealing_key(session, state.seal_private, publics[name][0], self.name, name)
                sealed[name] = crypto.seal(key, parts[name], session.between(self.name, name)).hex()
        state.seed, state.publics, state.own, state.step = seed, publics, parts[self.name], "mask"
        return session.pack(SHARES, self.name, {"sealed": sealed})

    def mask(self, message: bytes, values: FloatArray) -> bytes:
        """The upload: values, quantised, plus a mask of one's own, plus or minus one for each other client.

        y_u = x_u + PRG(b_u) + sum_{v > u} PRG(k_uv) - sum_{v < u} PRG(k_uv) mod 2^bits, over the clients v whose shares
        came. values: float[length]. Raises InvalidInput where they are of another length, or overflow.
        """
        self._due("mask")
        session, state = self.session, self._state
        body, _ = session.unpack(message, RELAY, SERVER)
        found = table(body.get("sealed"), "relayed shares")
        others = session.names(found, "relayed shares")
        if self.name in others or not set(others) <= set(state.publics):
            raise BadMessage("relayed shares: from clients that are not in the roster")
        session.enough((*others, self.name), "clients with shares")
        shares = {name: self._opened(name, found[name]) for name in others}
        values = np.asarray(values, dtype=np.float64)
        if values.shape != (session.length,):
            raise checks.InvalidInput("upload", list(values.shape), f"an array of shape [{session.length}]")
        upload = session.quantiser.encode(values, len(session.clients))
        upload = upload + crypto.stream(state.seed, session.length, session.quantiser)
        for other in others:
            upload = upload + pair_mask(session, state.mask_private, self.name, state.publics[other][1], other)
        state.shares, state.step = {**shares, self.name: state.own}, "agree" if session.signed else "unmask"
        return session.pack(MASKED, self.name, {}, upload.astype(session.quantiser.dtype).tobytes())

    def agree(self, message: bytes) -> bytes:
        """In a signed session: a signature on the list of survivors, the only list that this client will open."""
        self._due("agree")
        assert self._signing is not None
        survivors = self._survivors(self.session.unpack(message, SURVIVORS, SERVER)[0])
        signature = crypto.sign(self._signing.private, survivors_text(self.session, survivors))
        self._state.agreed, self._state.step = list(survivors), "unmask"
        return self.session.pack(AGREED, self.name, {"signature": signature.hex()})

    def unmask(self, message: bytes) -> bytes:
        """Shares of the seed of every survivor, and of the mask key of everyone lost after sharing; never both."""
        self._due("unmask")
        session, state = self.session, self._state
        body, _ = session.unpack(message, UNMASK, SERVER)
        survivors = self._survivors(body)
        if self._signing is not None:
            self._check_agreement(survivors, table(body.get("signatures"), "signatures"))
        keys = {n: state.shares[n][:SHARE_BYTES].hex() for n in sorted(state.shares) if n not in survivors}
        seeds = {n: state.shares[n][SHARE_BYTES:].hex() for n in survivors}
        self._state = _State("over")
        return session.pack(REVEALED, self.name, {"keys": keys, "seeds": seeds})

    def _due(self, step: str) -> None:
        if self._state.step != step:
            raise BadMessage(f"client {self.name!r}: asked to {step}, but what comes next is {self._state.step!r}")

    def _survivors(self, body: dict[str, Any]) -> tuple[str, ...]:
        found = body.get("survivors")
        survivors = self.session.names(found, "survivors") if isinstance(found, list) else ()
        if self.name not in survivors or not set(survivors) <= set(self._state.shares):
            raise BadMessage("survivors: without this client, or with clients that shared nothing with it")
        self.session.enough(survivors, "survivors")
        return survivors

    def _check_agreement(self, survivors: tuple[str, ...], signatures: dict[str, Any]) -> None:
        assert self._signing is not None
        if list(survivors) != self._state.agreed:
            raise BadMessage("survivors: not the list that this client signed")
        agreed = self.session.names(signatures, "signatures")
        self.session.enough(tuple(name for name in agreed if name in survivors), "survivors that signed")
        text = survivors_text(self.session, survivors)
        for name in agreed:
            check_signature(self._signing.roster, name, signatures[name], text)

    def _opened(self, sender: str, sealed: object) -> bytes:
        session, state, what = self.session, self._state, f"share of {sender!r}"
        key = sealing_key(session, state.seal_private, state.publics[sender][0], sender, self.name)
        try:
            parts = crypto.unseal(key, raw(sealed, None, what), session.between(sender, self.name))
        except crypto.Forged as error:
            raise BadMessage(f"{what}: {error}") from None
        for half in (parts[:SHARE_BYTES], parts[SHARE_BYTES:]):
            check_share(half, what)
        return parts


def _texts(value: Any) -> Any:
    """Bytes as {"hex": digits}, all else as it is."""
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, dict):
        return {name: _texts(entry) for name, entry in value.items()}
    return [_texts(entry) for entry in value] if isinstance(value, list) else value


def _from_texts(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"hex"} and isinstance(value["hex"], str):
            return bytes.fromhex(value["hex"])
        return {name: _from_texts(entry) for name, entry in value.items()}
    return [_from_texts(entry) for entry in value] if isinstance(value, list) else value

"""What masking's clients and server agree on beforehand, and the form of their messages.

A message is one line of JSON, a line feed, and raw bytes (the numbers of a masked upload, else none). Every message
names its kind, its session and its sender; nothing in it is ever executed or unpickled.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fedhedge import checks
from fedhedge.deployment.masking_numbers import Quantiser

KEYS, ROSTER, SHARES, RELAY, MASKED = "keys", "roster", "shares", "relay", "masked"
SURVIVORS, AGREED, UNMASK, REVEALED = "survivors", "agreed", "unmask", "revealed"
SERVER = ""
LEAST_CLIENTS = 3


class BadMessage(ValueError):
    """A message that is malformed, of another session, out of turn, repeated, or forged; the message says which."""


class Aborted(RuntimeError):
    """A session that cannot end: fewer clients than the threshold are left, or shares contradict each other."""


@dataclass(frozen=True)
class Session:
    """One masked sum; each side makes its own copy, and messages count only between equal copies.

    experiment, round, attempt: which sum it is; an attempt that was given up is repeated under a new number.
    clients: their names, at least 3. length: d, the numbers of an upload. threshold: t, how many clients must be left;
    None takes the majority n // 2 + 1, which is the least allowed, so that no two disjoint groups can both open
    something. Tolerance is n - t. quantiser: see `Quantiser`. signed: messages that fix keys and survivors are signed.

    Raises InvalidInput.
    """

    experiment: str
    round: int
    clients: tuple[str, ...]
    length: int
    threshold: int = None  # type: ignore[assignment]  # resolved below: the default depends on the clients
    quantiser: Quantiser = field(default_factory=Quantiser)
    attempt: int = 0
    signed: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.experiment, str) or not self.experiment:
            raise checks.InvalidInput("experiment", self.experiment, "a text that is not empty")
        checks.integer("round", self.round, low=0)
        checks.integer("attempt", self.attempt, low=0)
        checks.integer("length", self.length, low=1)
        checks.boolean("signed", self.signed)
        if isinstance(self.clients, str) or not isinstance(self.clients, Iterable):
            raise checks.InvalidInput("clients", self.clients, "a list of names")
        names = tuple(self.clients)
        wrong = [name for name in names if not isinstance(name, str) or not name]
        if wrong or len(set(names)) != len(names) or len(names) < LEAST_CLIENTS:
            hint = "the sum of two tells each of them the other's upload"
            raise checks.InvalidInput("clients", list(names), f"{LEAST_CLIENTS} or more different names", hint)
        # One order on all sides, whatever order the names came in.
        object.__setattr__(self, "clients", tuple(sorted(names)))
        majority = len(names) // 2 + 1
        wanted = majority if self.threshold is None else self.threshold
        object.__setattr__(self, "threshold", checks.integer("threshold", wanted, low=majority, high=len(names)))

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of everything agreed."""
        numbers = [self.quantiser.bits, self.quantiser.fraction]
        agreed = [self.experiment, self.round, self.attempt, self.clients, self.length, self.threshold, numbers]
        return hashlib.sha256(json.dumps([*agreed, self.signed]).encode()).digest()

    def place(self, client: str) -> int:
        """The client's place in Shamir's sharing, from 1."""
        return self.clients.index(client) + 1

    def between(self, sender: str, reader: str) -> bytes:
        """A text that only this ordered pair of clients has."""
        return json.dumps([sender, reader]).encode()

    def pack(self, kind: str, sender: str, body: Mapping[str, Any], payload: bytes = b"") -> bytes:
        """A message of this session."""
        head = {"kind": kind, "session": self.digest.hex(), "sender": sender, "body": body}
        return json.dumps(head, sort_keys=True, separators=(",", ":")).encode() + b"\n" + payload

    def unpack(self, message: bytes, kind: str, sender: str) -> tuple[dict[str, Any], bytes]:
        """(body, payload) of a message of this kind from this sender. Raises BadMessage."""
        who = "the server" if sender == SERVER else f"client {sender!r}"
        if not isinstance(message, bytes):
            raise BadMessage(f"message of {who}: not bytes but {type(message).__name__}")
        line, feed, payload = message.partition(b"\n")
        try:
            head = json.loads(line) if feed else None
        except (ValueError, RecursionError):
            head = None
        if not isinstance(head, dict) or head.keys() != {"kind", "session", "sender", "body"}:
            raise BadMessage(f"message of {who}: malformed or cut")
        if head["session"] != self.digest.hex():
            raise BadMessage(f"message of {who}: of another experiment, round, attempt, or of other settings")
        if head["kind"] != kind:
            raise BadMessage(f"message of {who}: of kind {head['kind']!r} where {kind!r} is due")
        if head["sender"] != sender:
            raise BadMessage(f"message of {who}: says that it is from {head['sender']!r}")
        if not isinstance(head["body"], dict):
            raise BadMessage(f"message of {who}: malformed body")
        return head["body"], payload

    def names(self, found: object, what: str) -> tuple[str, ...]:
        """Different names of clients of this session, in its order. Raises BadMessage."""
        if not isinstance(found, list | dict) or any(not isinstance(name, str) for name in found):
            raise BadMessage(f"{what}: not a list of clients")
        if not set(found) <= set(self.clients) or len(set(found)) != len(found):
            raise BadMessage(f"{what}: unknown or repeated clients")
        return tuple(name for name in self.clients if name in found)

    def enough(self, found: tuple[str, ...], what: str) -> None:
        """Raises Aborted where these are fewer clients than the threshold."""
        if len(found) < self.threshold:
            raise Aborted(f"{what}: {len(found)} of {len(self.clients)} clients, and {self.threshold} are needed")


def raw(found: object, length: int | None, what: str) -> bytes:
    """Bytes from hexadecimal digits, of this length. Raises BadMessage."""
    try:
        value = bytes.fromhex(found)  # type: ignore[arg-type]  # anything else is a TypeError
    except (TypeError, ValueError):
        raise BadMessage(f"{what}: not hexadecimal digits") from None
    if length is not None and len(value) != length:
        raise BadMessage(f"{what}: {len(value)} bytes, not {length}")
    return value


def table(found: object, what: str) -> dict[str, Any]:
    """An object of JSON. Raises BadMessage."""
    if not isinstance(found, dict):
        raise BadMessage(f"{what}: missing or malformed")
    return found

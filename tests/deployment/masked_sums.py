"""Masked sums driven from trip to trip, with clients that stop at a given one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from fedhedge.deployment.masking import MaskingClient, MaskingServer, Session, Signing, Total

# The trip that a client misses first; STAYS answers all.
KEYS, SHARES, MASKED, REVEALED, STAYS = range(5)


class Sum:
    """A session with its server and clients. sent: every message of the clients, by (trip, client); got: theirs."""

    def __init__(self, session: Session, signings: Mapping[str, Any] | None = None) -> None:
        self.session = session
        signings = signings or {}
        roster = next(iter(signings.values())).roster if signings else None
        self.server = MaskingServer(session, roster)
        self.clients = {name: MaskingClient(session, name, signings.get(name)) for name in session.clients}
        self.sent: dict[tuple[str, str], bytes] = {}
        self.got: dict[tuple[str, str], bytes] = {}

    def answer(self, name: str, message: bytes, values: np.ndarray | None) -> bytes:
        client = self.clients[name]
        if client.step == "advertise":
            return client.advertise()
        if client.step == "mask":
            return client.mask(message, values)
        return {"share": client.share, "agree": client.agree, "unmask": client.unmask}[client.step](message)

    def trip(self, asked: Mapping[str, bytes], absent: set[str], values: Mapping[str, np.ndarray]) -> dict[str, bytes]:
        """One trip: the requests, the answers of those that are there, and the end of it."""
        trip = self.server.trip
        for name, message in asked.items():
            if name not in absent:
                self.got[trip, name] = message
                self.sent[trip, name] = self.answer(name, message, values.get(name))
                self.server.receive(name, self.sent[trip, name])
        return self.server.advance()

    def run(self, values: Mapping[str, np.ndarray], stops: Mapping[str, int] | None = None) -> Total:
        """All trips; `stops` gives the trip that a client misses first."""
        order = ["keys", "shares", "masked", "revealed"]
        asked = dict.fromkeys(self.session.clients, b"")
        while asked:
            # Signing the list of survivors belongs to the last trip here.
            at = order.index(self.server.trip) if self.server.trip in order else REVEALED
            absent = {name for name, stop in (stops or {}).items() if stop <= at}
            asked = self.trip(asked, absent, values)
        return self.server.total


def names(count: int) -> tuple[str, ...]:
    return tuple(f"site-{place}" for place in range(count))


def expected(session: Session, values: Mapping[str, np.ndarray], present: set[str]) -> np.ndarray:
    """The sum of what is there, in whole steps, by Python's integers."""
    step = session.quantiser.step
    columns = zip(*(values[name].tolist() for name in sorted(present)), strict=True)
    return np.array([sum(round(value / step) for value in column) * step for column in columns])


def session(count: int = 4, length: int = 5, **settings: Any) -> Session:
    return Session("run-a", settings.pop("round", 3), names(count), length, **settings)


def uploads(of: Session) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(len(of.clients))
    return {name: rng.normal(size=of.length) * 10.0 for name in of.clients}


def prepared(of: Session, until: int, signings: Mapping[str, Signing] | None = None) -> tuple[Sum, dict[str, bytes]]:
    """A session with its first `until` trips done, and the next requests."""
    run, asked = Sum(of, signings), dict.fromkeys(of.clients, b"")
    for _ in range(until):
        asked = run.trip(asked, set(), uploads(of))
    return run, asked


def request(of: Session, survivors: list[str], **more: Any) -> bytes:
    return of.pack("unmask", "", {"survivors": survivors, **more})


def changed(message: bytes, change: Any) -> bytes:
    line, _, payload = message.partition(b"\n")
    head = json.loads(line)
    change(head["body"])
    return json.dumps(head).encode() + b"\n" + payload


def read(of: Session, message: bytes) -> np.ndarray:
    return np.frombuffer(message.partition(b"\n")[2], of.quantiser.dtype)

"""Clients that come for a while and stay away for a while: an on/off Markov chain each."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedhedge import streams
from fedhedge.availability import arguments, products
from fedhedge.availability.base import Law, check_rounds
from fedhedge.checks import InvalidInput


@dataclass(frozen=True, eq=False)
class Markov(Law):
    """Each client is an independent two-state chain, started from its stationary law in round 0.

    `arrive` is a_i = P(present in round t + 1 | absent in t), `leave` is l_i = P(absent in t + 1 | present in t):
    numbers in [0, 1], or one per client. The share of rounds with client i is q_i = a_i / (a_i + l_i), visits last
    1 / l_i rounds on average, and the correlation between rounds t and t + k is (1 - a_i - l_i)^k. The results are
    those of one round, in which clients are independent with probabilities q_i.
    Raises InvalidInput when a_i + l_i = 0 (no stationary law) or nobody ever arrives.
    """

    arrive: ArrayLike
    leave: ArrayLike

    def __post_init__(self) -> None:
        arrive = arguments.probabilities("arrive", self.arrive)
        leave = arguments.probabilities("leave", self.leave)
        if arrive.ndim and leave.ndim and arrive.size != leave.size:
            raise InvalidInput("leave", leave.tolist(), f"{arrive.size} probabilities, as many as in arrive")
        arrive, leave = np.broadcast_arrays(arrive, leave)
        stuck = np.flatnonzero(arrive + leave == 0)
        if len(stuck):
            allowed = "a positive probability to arrive or to leave"
            raise InvalidInput("arrive, leave", (0.0, 0.0), allowed, f"client {stuck[0]} never changes")
        arguments.some_client("arrive", arrive)
        object.__setattr__(self, "arrive", arrive)
        object.__setattr__(self, "leave", leave)

    @property
    def clients(self) -> int | None:
        arrive = np.asarray(self.arrive)
        return arrive.size if arrive.ndim else None

    def _tie(self, clients: int) -> Self:
        return dataclasses.replace(self, arrive=np.full(clients, self.arrive), leave=np.full(clients, self.leave))

    def share(self) -> NDArray[np.float64]:
        """Stationary probability q_i that client i is present, float64[N]."""
        self.count()
        arrive = np.asarray(self.arrive)
        return np.asarray(arrive / (arrive + np.asarray(self.leave)), dtype=np.float64)

    def sample(self, rng: np.random.Generator, round: int) -> NDArray[np.bool_]:
        return rng.random(self.count()) < self.share()

    def schedule(self, seed: int, start: int, stop: int) -> NDArray[np.bool_]:
        """Who gets through in rounds start, ..., stop - 1: bool[stop - start, N]; the chain itself, with its memory.

        Round t turns the state into 1{u < 1 - l_i} where the client was present and 1{u < a_i} where it was not, with
        one uniform u per client and round. A u below both or above both decides the state whatever it was, so that
        the state before `start` is found by going back a few rounds, not to round 0.
        """
        check_rounds(seed, start, stop)
        arrive, stay, share = np.asarray(self.arrive), 1 - np.asarray(self.leave), self.share()
        first = start
        unknown = np.full(self.count(), start < stop)
        while first > 0 and unknown.any():
            first -= 1
            u = self._uniforms(seed, first)
            unknown &= (u < arrive) != (u < stay)
        present = np.empty((stop - start, self.count()), dtype=np.bool_)
        # The clients still unknown at `first` > 0 are none, so any state will do there; round 0 is the stationary law.
        state = np.zeros(self.count(), dtype=np.bool_)
        for t in range(first, stop):
            u = self._uniforms(seed, t)
            state = u < share if t == 0 else u < np.where(state, stay, arrive)
            if t >= start:
                present[t - start] = state
        return present

    def _uniforms(self, seed: int, round: int) -> NDArray[np.float64]:
        return streams.generator(seed, streams.Purpose.AVAILABILITY, round=round).random(self.count())

    def generating(self, z: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        return products.independent(self.share(), z)

    def largest(self) -> int:
        return int(np.count_nonzero(self.share()))

"""Clients that are selected and then fail before they deliver."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedhedge import streams
from fedhedge.availability import arguments
from fedhedge.availability.base import Law
from fedhedge.checks import InvalidInput


@dataclass(frozen=True, eq=False)
class Dropout(Law):
    """Each client that `law` lets through is lost with probability d_i = `rate`, independently; all may be.

    `rate` is one number in [0, 1] or one per client. With F the law's generating function, that of what is left is
    F(d + (1 - d) z), so that every result is as exact as the law's own.
    Raises InvalidInput when a rate is out of range, there is not one per client, or nobody would be left.
    """

    law: Law
    rate: ArrayLike

    def __post_init__(self) -> None:
        if not isinstance(self.law, Law):
            raise InvalidInput("law", self.law, "an availability law")
        rate = arguments.probabilities("rate", self.rate)
        object.__setattr__(self, "rate", rate)
        if rate.ndim:
            if self.law.clients not in (None, rate.size):
                raise InvalidInput("rate", rate.tolist(), f"one number, or {self.law.clients}, one per client")
            object.__setattr__(self, "law", self.law.bind(rate.size))
        if not self._may_deliver().any():
            raise InvalidInput("rate", rate.tolist(), "a rate below 1 for a client that the law lets through")

    @property
    def clients(self) -> int | None:
        return self.law.clients

    @property
    def exact(self) -> bool:
        return self.law.exact

    @property
    def layers(self) -> int:
        return self.law.layers + 1

    def _tie(self, clients: int) -> Self:
        return dataclasses.replace(self, law=self.law.bind(clients))

    def sample(self, rng: np.random.Generator, round: int) -> NDArray[np.bool_]:
        return self.law.sample(rng, round) & self._kept(rng)

    def schedule(self, seed: int, start: int, stop: int) -> NDArray[np.bool_]:
        """The law's own schedule, less the clients lost: bool[stop - start, N]."""
        selected = self.law.schedule(seed, start, stop)
        kept = np.empty_like(selected)
        for row, t in enumerate(range(start, stop)):
            rng = streams.generator(seed, streams.Purpose.AVAILABILITY, round=t)
            # The law may have memory and opens this round's stream itself: go far past what it uses there.
            assert isinstance(rng.bit_generator, np.random.Philox)
            rng.bit_generator.advance(self.layers << 128)
            kept[row] = self._kept(rng)
        return selected & kept

    def _kept(self, rng: np.random.Generator) -> NDArray[np.bool_]:
        return rng.random(self.count()) >= np.asarray(self.rate)

    def _may_deliver(self) -> NDArray[np.bool_]:
        kept = np.asarray(self.rate) < 1
        return kept if kept.all() or not kept.any() else kept & (self.law.inclusion_probabilities() > 0)

    def generating(self, z: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        rate = np.asarray(self.rate)
        value, gradient = self.law.generating(rate + (1 - rate) * z)
        return value, (1 - rate) * gradient

    def largest(self) -> int:
        may_deliver = self._may_deliver()
        return min(self.law.largest(), int(may_deliver.sum())) if may_deliver.ndim else self.law.largest()

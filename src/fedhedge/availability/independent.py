"""Clients that get through independently of each other, each with its own probability."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedhedge.availability import arguments, products
from fedhedge.availability.base import DIRECT_FROM, Law


@dataclass(frozen=True, eq=False)
class Independent(Law):
    """Bernoulli availability: P(i in S) = q_i, independent over clients and rounds; |S| varies and may be 0.

    `probabilities` is q[N], each in [0, 1], or one number for any number of clients. The weights are
    p_i = q_i E[1 / (1 + B_i)] / P(S not empty), B_i the Poisson-binomial number of the other clients.
    Raises InvalidInput when a probability is out of range or all are 0.
    """

    probabilities: ArrayLike

    def __post_init__(self) -> None:
        given = arguments.probabilities("probabilities", self.probabilities)
        arguments.some_client("probabilities", given)
        object.__setattr__(self, "probabilities", given)

    @property
    def clients(self) -> int | None:
        given = np.asarray(self.probabilities)
        return given.size if given.ndim else None

    def _tie(self, clients: int) -> Self:
        return dataclasses.replace(self, probabilities=np.full(clients, self.probabilities))

    @cached_property
    def _uniform(self) -> bool:
        return bool(np.ptp(np.asarray(self.probabilities)) == 0)

    @property
    def direct(self) -> bool:
        return self.count() >= DIRECT_FROM and self._uniform

    def draw(self, rng: np.random.Generator) -> NDArray[np.int64]:
        # How many is binomial; given how many, all sets are equally likely.
        size = rng.binomial(self.count(), float(np.asarray(self.probabilities)[0]))
        return np.sort(rng.choice(self.count(), size, replace=False, shuffle=False))

    def sample(self, rng: np.random.Generator, round: int) -> NDArray[np.bool_]:
        if self.direct:
            return self._as_table(self.draw(rng))
        return rng.random(self.count()) < np.asarray(self.probabilities)

    def generating(self, z: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        return products.independent(np.asarray(self.probabilities), z)

    def weights(self) -> NDArray[np.float64]:
        # Equal by symmetry; few clients go the way of all laws.
        return np.full(self.count(), 1 / self.count()) if self.direct else super().weights()

    def largest(self) -> int:
        self.count()
        return int(np.count_nonzero(self.probabilities))

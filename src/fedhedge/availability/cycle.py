"""Availability that follows the time of day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedhedge.availability import arguments, products
from fedhedge.availability.base import Law


@dataclass(frozen=True, eq=False)
class Cycle(Law):
    """Independent clients whose probabilities repeat with a period: round t uses row t mod period.

    `probabilities` is q[period, N], each in [0, 1]; rows of zeros (hours when nobody comes) are allowed. The
    results are averages over the period, the weights over its non-empty rounds. Raises InvalidInput when a
    probability is out of range or all are 0.
    """

    probabilities: ArrayLike

    def __post_init__(self) -> None:
        given = arguments.probabilities("probabilities", self.probabilities, dimensions=(2,))
        arguments.some_client("probabilities", given)
        object.__setattr__(self, "probabilities", given)

    @property
    def clients(self) -> int:
        return int(np.asarray(self.probabilities).shape[1])

    @property
    def period(self) -> int:
        """Number of rounds after which the probabilities repeat."""
        return len(np.asarray(self.probabilities))

    def sample(self, rng: np.random.Generator, round: int) -> NDArray[np.bool_]:
        now = np.asarray(self.probabilities, dtype=np.float64)[round % self.period]
        return np.asarray(rng.random(self.clients) < now)

    def generating(self, z: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        value = np.zeros(len(z), dtype=z.dtype)
        gradient = np.zeros(z.shape, dtype=z.dtype)
        for row in np.asarray(self.probabilities):
            row_value, row_gradient = products.independent(row, z)
            value += row_value / self.period
            gradient += row_gradient / self.period
        return value, gradient

    def largest(self) -> int:
        return int(np.count_nonzero(np.asarray(self.probabilities), axis=1).max())

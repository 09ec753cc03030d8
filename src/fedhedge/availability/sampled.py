"""A law of your own of which only the sampler is known."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedhedge.availability.base import MONTE_CARLO_ROUNDS
from fedhedge.availability.table import Table


class SampledLaw(Table):
    """A law given by `clients` and `sample` alone; its results are Monte Carlo estimates over 20,000 rounds.

    `standard_errors()` and `describe()` say how far they can be trusted. The subclass should be immutable; give
    `generating` and derive from `Law` where the mathematics is known.
    """

    @property
    def exact(self) -> bool:
        return False

    @cached_property
    def _rounds(self) -> NDArray[np.bool_]:
        return self.monte_carlo()

    def table(self) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        return self._rounds, np.full(MONTE_CARLO_ROUNDS, 1 / MONTE_CARLO_ROUNDS)

    def largest(self) -> int:
        return self.count()

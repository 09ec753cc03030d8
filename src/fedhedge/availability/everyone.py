"""Full participation."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fedhedge import checks
from fedhedge.availability.base import check_rounds
from fedhedge.availability.table import Table


@dataclass(frozen=True, eq=False)
class Everyone(Table):
    """Every client gets through in every round: p_i = 1/N. `clients` may stay None until the law is bound."""

    clients: int | None = None

    def __post_init__(self) -> None:
        if self.clients is not None:
            checks.integer("clients", self.clients, low=1)

    def _tie(self, clients: int) -> Self:
        return dataclasses.replace(self, clients=clients)

    def sample(self, rng: np.random.Generator, round: int) -> NDArray[np.bool_]:
        return np.ones(self.count(), dtype=np.bool_)

    def schedule(self, seed: int, start: int, stop: int) -> NDArray[np.bool_]:
        check_rounds(seed, start, stop)
        return np.ones((stop - start, self.count()), dtype=np.bool_)

    def table(self) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        return np.ones((1, self.count()), dtype=np.bool_), np.ones(1)

"""Shares of each class drawn from a Dirichlet law."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedhedge import checks
from fedhedge.checks import InvalidInput
from fedhedge.data.partitioners.base import Partitioner

_DRAWS = 1000


@dataclass(frozen=True)
class Dirichlet(Partitioner):
    """For each class the clients' shares are one draw from Dirichlet(concentration, ..., concentration).

    A small concentration gives each class to few clients; a large one tends to `Iid`. All shares are drawn anew until
    every client has `minimum_rows` rows. Source: Yurochkin et al. 2019 (arXiv 1905.12022).
    """

    concentration: float
    minimum_rows: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        concentration = checks.number("concentration", self.concentration, above=0.0)
        object.__setattr__(self, "concentration", concentration)
        object.__setattr__(self, "minimum_rows", checks.integer("minimum_rows", self.minimum_rows, low=1))

    def shares(self, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One accepted draw; InvalidInput when none of many gives every client its rows."""
        most = int(counts.sum()) // self.clients
        if self.minimum_rows > most:
            hint = f"{counts.sum()} rows for {self.clients} clients"
            raise InvalidInput("minimum_rows", self.minimum_rows, f"a whole number from 1 to {most}", hint)
        for _ in range(_DRAWS):
            drawn = rng.dirichlet(np.full(self.clients, self.concentration), size=len(counts))
            if np.floor(drawn * counts[:, None]).sum(axis=0).min() >= self.minimum_rows:
                return drawn
        hint = f"no draw of {_DRAWS} did; a larger concentration or fewer clients also help"
        allowed = f"few enough that every one of {self.clients} clients can get them"
        raise InvalidInput("minimum_rows", self.minimum_rows, allowed, hint)

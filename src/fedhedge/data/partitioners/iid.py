"""Every client alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedhedge.data.partitioners.base import Partitioner


@dataclass(frozen=True)
class Iid(Partitioner):
    """Each of `clients` clients gets an equal part of every class: sizes differ by one row at most."""

    def shares(self, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """1/N everywhere."""
        return np.full((len(counts), self.clients), 1.0 / self.clients)

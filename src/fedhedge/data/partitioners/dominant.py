"""One class dominates each site."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedhedge import checks
from fedhedge.data.partitioners.base import Partitioner


@dataclass(frozen=True)
class Dominant(Partitioner):
    """Client i is a home of class i mod K: the part `share` of a class goes to its homes, the rest to all others.

    Homes, and likewise the others, share evenly. With K equal classes and a multiple of K clients, `share` is also
    the part of a client's rows that its own class makes up. A class without a home (more classes than clients) goes
    to all clients alike.
    """

    share: float = 0.8

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "share", checks.number("share", self.share, above=0.0, high=1.0))

    def shares(self, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """`share` over the homes of a class, 1 - `share` over the others."""
        homes = np.arange(self.clients) % len(counts) == np.arange(len(counts))[:, None]
        at_home = homes.sum(axis=1, keepdims=True)
        away = self.clients - at_home
        shares = np.where(homes, self.share / np.maximum(at_home, 1), (1.0 - self.share) / np.maximum(away, 1))
        return np.where((at_home == 0) | (away == 0), 1.0 / self.clients, shares)

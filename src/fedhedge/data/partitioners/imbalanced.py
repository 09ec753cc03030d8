"""Every class everywhere, in unequal numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedhedge import checks
from fedhedge.checks import InvalidInput
from fedhedge.data.partitioners.base import Partitioner


@dataclass(frozen=True)
class Imbalanced(Partitioner):
    """Every client holds every class, in unequal numbers.

    Client g gets the part proportional to `sizes[g]` of each class; by default the sizes fall as N, N - 1, ..., 1,
    which is 40, 30, 20 and 10 % for four clients. With `rotate`, class c gives client g the part proportional to
    `sizes[(g + c) mod N]` instead: clients are then of like size and differ in their mix of classes.
    """

    sizes: tuple[float, ...] | None = None
    rotate: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.boolean("rotate", self.rotate)
        if self.sizes is None:
            return
        sizes = tuple(checks.number(f"sizes[{g}]", size, above=0.0) for g, size in enumerate(self.sizes))
        if len(sizes) != self.clients:
            raise InvalidInput("sizes", self.sizes, f"{self.clients} numbers, one for each client")
        object.__setattr__(self, "sizes", sizes)

    def shares(self, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Relative sizes, moved by one client from class to class with `rotate`."""
        sizes = np.arange(self.clients, 0, -1) if self.sizes is None else np.array(self.sizes)
        relative = sizes / sizes.sum()
        return np.stack([np.roll(relative, -label if self.rotate else 0) for label in range(len(counts))])

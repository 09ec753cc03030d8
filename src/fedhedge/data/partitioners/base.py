"""What every partitioner is: a rule that gives each client a share of each class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fedhedge import checks


@dataclass(frozen=True)
class Partitioner(ABC):
    """Deals the rows of a source to `clients` clients, class by class.

    A new rule is a frozen dataclass with the one method `shares`.
    """

    clients: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "clients", checks.integer("clients", self.clients, low=1))

    @abstractmethod
    def shares(self, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Share of each class that each client gets, float[K, N] with rows that sum to 1.

        `counts` is the number of rows of each class, int[K]. Raises InvalidInput when the rule does not suit them.
        """

    def assign(self, labels: np.ndarray, classes: int, rng: np.random.Generator) -> np.ndarray:
        """Client of every row, int32[n]; `labels` are class indices below `classes`."""
        return deal(labels, self.shares(np.bincount(labels, minlength=classes), rng), rng)

    def as_dict(self) -> dict[str, Any]:
        """Name and arguments in JSON terms."""
        return {"kind": type(self).__name__, **asdict(self)}


def deal(labels: np.ndarray, shares: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Client of every row, int32[n]: the rows of each class in random order, dealt by `shares` float[K, N].

    A client gets its share rounded down or up. Rows left by rounding go to the largest remainders, among equals to
    the client with the fewest rows so far, then by lot.
    """
    classes, clients = shares.shape
    client = np.empty(len(labels), np.int32)
    totals = np.zeros(clients, np.int64)
    for label in range(classes):
        rows = rng.permutation(np.flatnonzero(labels == label))
        # Equal shares must give equal remainders, whatever their last digits.
        quota = np.round(shares[label] * len(rows), 9)
        dealt = np.floor(quota).astype(np.int64)
        by_remainder = np.lexsort([rng.random(clients), totals, dealt - quota])
        dealt[by_remainder[: len(rows) - dealt.sum()]] += 1
        client[rows] = np.repeat(np.arange(clients, dtype=np.int32), dealt)
        totals += dealt
    return client

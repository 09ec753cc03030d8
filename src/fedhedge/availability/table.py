"""Laws that are a finite table of subsets with probabilities; every result is a sum over the table."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedhedge.availability import products
from fedhedge.availability.base import Law


class Table(Law):
    """A law with finitely many outcomes: `table()` gives them as rows of bool[K, N] with probabilities float64[K]."""

    @abstractmethod
    def table(self) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """The subsets, bool[K, N], and their probabilities, float64[K], which sum to 1."""

    def generating(self, z: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        subsets, probability = self.table()
        value = np.empty(len(z), dtype=z.dtype)
        gradient = np.empty(z.shape, dtype=z.dtype)
        for k, row in enumerate(z):
            factors = np.where(subsets, row, 1)
            value[k] = probability @ factors.prod(axis=1)
            gradient[k] = probability @ (subsets * products.all_but_one(factors))
        return value, gradient

    def inclusion_probabilities(self) -> NDArray[np.float64]:
        subsets, probability = self.table()
        return np.asarray(probability @ subsets, dtype=np.float64)

    def empty_probability(self) -> float:
        return float(self.sizes()[0])

    def weights(self) -> NDArray[np.float64]:
        subsets, probability = self.table()
        total = (probability / np.maximum(subsets.sum(axis=1), 1)) @ subsets
        return np.asarray(total / total.sum(), dtype=np.float64)

    def sizes(self) -> NDArray[np.float64]:
        subsets, probability = self.table()
        counts = np.bincount(subsets.sum(axis=1), weights=probability, minlength=self.largest() + 1)
        return np.asarray(counts[: self.largest() + 1], dtype=np.float64)

    def largest(self) -> int:
        subsets, probability = self.table()
        return int(subsets[probability > 0].sum(axis=1).max())

    def smallest(self) -> int:
        subsets, probability = self.table()
        return int(subsets[probability > 0].sum(axis=1).min())

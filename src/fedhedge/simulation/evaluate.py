"""Evaluation of one model on the rows of every client."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import jax
import numpy as np

from fedhedge.algorithms.base import Tree
from fedhedge.models.base import Functional
from fedhedge.simulation.rows import on_device

if TYPE_CHECKING:
    from fedhedge.data import Clients

BLOCK = 2048


class Evaluator:
    """Per-row losses and hits of a model on one split, in blocks of one size so that one compilation serves all.

    The rows stay on the device between evaluations; sums over clients are taken in float64.
    """

    def __init__(self, model: Functional, clients: Clients, split: str, precision: str) -> None:
        self.model, self.split = model, split
        self.features, self.labels = on_device(clients, split, precision)
        self.classifies = bool(clients.classes)
        self.rows = len(self.labels)
        self.starts, self.counts = clients.offsets(split)[:-1], clients.counts(split)

    def __call__(self, params: Tree) -> dict[str, tuple[np.ndarray, float]]:
        """Metric name -> (value of each client [N], value over all rows); NaN for a client without rows."""
        size = min(BLOCK, self.rows)
        # The last block begins early enough to be whole.
        starts = [min(at, self.rows - size) for at in range(0, self.rows, size)]
        per_row: dict[str, np.ndarray] = {}
        for at in starts:
            found = _block(self.model, self.classifies, size, params, self.features, self.labels, at)
            for name, values in found.items():
                per_row.setdefault(name, np.empty(self.rows))[at : at + size] = values
        return {name: self._mean(values) for name, values in per_row.items()}

    def _mean(self, values: np.ndarray) -> tuple[np.ndarray, float]:
        totals = np.diff(np.concatenate([[0.0], np.cumsum(values)])[np.append(self.starts, self.rows)])
        with np.errstate(invalid="ignore"):
            return totals / np.where(self.counts > 0, self.counts, np.nan), float(values.mean())


def mean_loss(model: Functional, params: Tree, clients: Clients, precision: str) -> float:
    """Mean loss of a model over all training rows."""
    return Evaluator(model, clients, "train", precision)(params)["loss"][1]


@partial(jax.jit, static_argnames=("model", "classifies", "size"))
def _block(
    model: Functional, classifies: bool, size: int, params: Tree, features: jax.Array, labels: jax.Array, at: int
) -> dict[str, jax.Array]:
    x, y = (jax.lax.dynamic_slice_in_dim(rows, at, size) for rows in (features, labels))
    seen = {"loss": model.loss(params, x, y)}
    if model.predict is not None and classifies:
        seen["accuracy"] = model.predict(params, x) == y
    return seen

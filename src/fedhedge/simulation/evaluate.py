"""Evaluation of one model on the rows of every client."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from fedhedge.algorithms.base import Tree
from fedhedge.models.base import Functional
from fedhedge.simulation.rows import Rows, on_device

if TYPE_CHECKING:
    from fedhedge.data import Clients

BLOCK = 2048


class Evaluator:
    """Per-row losses and hits of a model on one split, in blocks of one size so that one compilation serves all.

    The rows stay on the device between evaluations, but for clients whose rows are on disk, which are read block by
    block. Sums over clients are taken in float64.
    """

    def __init__(self, model: Functional, clients: Clients, split: str, precision: str) -> None:
        self.model, self.split, self.precision = model, split, precision
        self.on_disk = clients.on_disk
        rows: tuple[Any, Any] = clients.rows(split) if self.on_disk else on_device(clients, split, precision)
        self.features, self.labels = rows
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
            found = _block(self.model, self.classifies, size, params, *self._rows(at, size))
            for name, values in found.items():
                per_row.setdefault(name, np.empty(self.rows))[at : at + size] = values
        return {name: self._mean(values) for name, values in per_row.items()}

    def _rows(self, at: int, size: int) -> tuple[Rows, int]:
        """Arrays with the rows of a block, and where it begins in them."""
        if not self.on_disk:
            return (self.features, self.labels), at
        block = slice(at, at + size)
        return (jnp.asarray(self.features[block], self.precision), jnp.asarray(self.labels[block])), 0

    def _mean(self, values: np.ndarray) -> tuple[np.ndarray, float]:
        totals = np.diff(np.concatenate([[0.0], np.cumsum(values)])[np.append(self.starts, self.rows)])
        with np.errstate(invalid="ignore"):
            return totals / np.where(self.counts > 0, self.counts, np.nan), float(values.mean())


def mean_loss(model: Functional, params: Tree, clients: Clients, precision: str) -> float:
    """Mean loss of a model over all training rows."""
    return Evaluator(model, clients, "train", precision)(params)["loss"][1]


@partial(jax.jit, static_argnames=("model", "classifies", "size"))
def _block(model: Functional, classifies: bool, size: int, params: Tree, rows: Rows, at: int) -> dict[str, jax.Array]:
    x, y = (jax.lax.dynamic_slice_in_dim(leaf, at, size) for leaf in rows)
    seen = {"loss": model.loss(params, x, y)}
    if model.predict is not None and classifies:
        seen["accuracy"] = model.predict(params, x) == y
    return seen

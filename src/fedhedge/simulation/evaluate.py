"""Evaluation of one model on the rows of every client."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from fedhedge.algorithms.base import Tree
from fedhedge.models.base import Functional

if TYPE_CHECKING:
    from fedhedge.data import Clients

BLOCK = 2048


class Evaluator:
    """Per-row losses and hits of a model on one split, in blocks of one size so that one compilation serves all.

    The rows stay on the device between evaluations; sums over clients are taken in float64.
    """

    def __init__(self, model: Functional, clients: Clients, split: str, precision: str) -> None:
        features, labels = clients.rows(split)
        self.model, self.split = model, split
        self.classifies = bool(clients.classes)
        self.rows = len(labels)
        self.starts, self.counts = clients.offsets(split)[:-1], clients.counts(split)
        size = min(BLOCK, self.rows)
        self._blocks = []
        for at in range(0, self.rows, size):
            x, y = (_filled(rows[at : at + size], size) for rows in (features, labels))
            self._blocks.append((jnp.asarray(x, precision), jnp.asarray(y)))

    def __call__(self, params: Tree) -> dict[str, tuple[np.ndarray, float]]:
        """Metric name -> (value of each client [N], value over all rows); NaN for a client without rows."""
        results = [_block(self.model, self.classifies, params, x, y) for x, y in self._blocks]
        per_row = {name: np.concatenate([np.asarray(block[name]) for block in results]) for name in results[0]}
        return {name: self._mean(values[: self.rows].astype(np.float64)) for name, values in per_row.items()}

    def _mean(self, values: np.ndarray) -> tuple[np.ndarray, float]:
        totals = np.diff(np.concatenate([[0.0], np.cumsum(values)])[np.append(self.starts, self.rows)])
        with np.errstate(invalid="ignore"):
            return totals / np.where(self.counts > 0, self.counts, np.nan), float(values.mean())


def mean_loss(model: Functional, params: Tree, clients: Clients, precision: str) -> float:
    """Mean loss of a model over all training rows."""
    return Evaluator(model, clients, "train", precision)(params)["loss"][1]


@partial(jax.jit, static_argnames=("model", "classifies"))
def _block(model: Functional, classifies: bool, params: Tree, x: jax.Array, y: jax.Array) -> dict[str, jax.Array]:
    seen = {"loss": model.loss(params, x, y)}
    if model.predict is not None and classifies:
        seen["accuracy"] = model.predict(params, x) == y
    return seen


def _filled(rows: np.ndarray, size: int) -> np.ndarray:
    missing = size - len(rows)
    return rows if missing == 0 else np.concatenate([rows, np.repeat(rows[:1], missing, axis=0)])

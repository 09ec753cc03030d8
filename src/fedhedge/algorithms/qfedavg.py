"""q-FedAvg: clients with larger losses count more."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import Batches, Cohort, Tree, over_cohort, traced, weighted_mean
from fedhedge.algorithms.fedavg import FedAvg
from fedhedge.models.base import Functional

# Losses are raised to the power q - 1, which may be negative.
SMALLEST_LOSS = 1e-10


class Report(NamedTuple):
    """A client's upload: its model, and its loss F_i(x) at the model that was broadcast."""

    model: Tree
    loss: jax.Array


@traced
@dataclasses.dataclass(frozen=True)
class QFedAvg(FedAvg):
    """Fair resource allocation: FedAvg's local steps for the objective sum_i p_i F_i^(q+1)/(q+1).

    D_i = L (x - y_i), L = 1/eta;  h_i = q F_i(x)^(q-1) ||D_i||^2 + L F_i(x)^q;
    x <- x - sum_S w_i F_i(x)^q D_i / sum_S w_i h_i.  q = 0 is FedAvg, bit for bit; the larger q, the more equal the
    losses. F_i(x) is measured on the rows of the round's mini-batches: all of the client's rows with batch_size=None,
    else an estimate, where the paper takes all rows. Client weights w_i are the aggregation's.
    step: eta > 0. q >= 0. ball: as in FedAvg. Uplink: d + 1 scalars. Raises InvalidInput for values not allowed.
    Source: Li et al. 2020 (arXiv 1905.10497), Algorithm 2; F + 1e-10 as in its published code.
    """

    name: ClassVar[str] = "QFedAvg"
    q: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("step", self.step, above=0.0)
        checks.number("q", self.q, low=0.0)

    def local(self, model: Functional, down: Tree, clients: Tree, batches: Batches, keys: jax.Array) -> Any:
        up, clients, seen = super().local(model, down, clients, batches, keys)

        def loss(index: jax.Array, present: jax.Array | None) -> jax.Array:
            rows = index.reshape(-1)
            losses = model.loss(down, batches.features[rows], batches.labels[rows])
            weight = jnp.ones_like(losses) if present is None else present.reshape(-1).astype(losses.dtype)
            return jnp.sum(losses * weight) / jnp.sum(weight)

        losses = over_cohort(loss, (batches.index, batches.present), batches.steps > 0, batches.layout)
        return Report(up, losses), clients, seen

    def aggregate(self, server: Tree, up: Report, cohort: Cohort) -> Tree:
        def squares(x: jax.Array, y: jax.Array) -> jax.Array:
            return jnp.sum((y - x) ** 2, axis=tuple(range(1, y.ndim)))

        loss = up.loss + SMALLEST_LOSS
        moved = sum(jax.tree.leaves(jax.tree.map(squares, server, up.model)))
        gain = loss**self.q
        # eta h_i; its mean rather than its sum, so that the weights at q = 0 are exactly those of FedAvg.
        curvature = gain + self.q * loss ** (self.q - 1.0) * moved / self.step
        total = jnp.sum(cohort.weights)
        mean = jnp.sum(cohort.weights * curvature) / jnp.where(total > 0, total, 1.0)
        weights = cohort.weights * (gain / mean)
        kept = jnp.sum(cohort.weights - weights)
        return jax.tree.map(lambda x, y: kept * x + y, server, weighted_mean(weights, up.model))

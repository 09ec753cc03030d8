"""FedDisco: weights by size and by how far a client's labels are from uniform."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import Batches, Cohort, Tree, traced
from fedhedge.algorithms.weighting import Weighting, normalised, over_rows
from fedhedge.algorithms.wrapper import Wrapped
from fedhedge.models.base import Functional


class Report(NamedTuple):
    """Number of rows of each client, and KL(labels || uniform) in nats, [S]."""

    rows: jax.Array
    divergence: jax.Array


@traced
@dataclasses.dataclass(frozen=True)
class FedDisco(Weighting):
    """Uploads averaged with weights proportional to max(n_i - a d_i + b, 0).

    n_i: the client's share of the rows of all who got through; d_i = KL(label distribution of i || uniform over the K
    classes of the run), in nats. When no weight is positive, the weights are n_i. Clients of weight 0 do not train.
    base: the method of the local work. a, b: as above, not negative. A report is two scalars; whatever the run's own
    `weighting` is, these weights replace it.
    Raises InvalidInput for a negative a or b, or a base whose weights are its own.
    Source: Ye et al. 2023 (arXiv 2305.19229), eq. (7); d_i enters as it is, not divided by its sum over clients.
    """

    name: ClassVar[str] = "FedDisco"
    a: float = 0.5
    b: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("a", self.a, low=0.0)
        checks.number("b", self.b, low=0.0)

    def probe(self, model: Functional, down: Tree, clients: Tree, batches: Batches, keys: jax.Array) -> Report:
        classes = jnp.max(batches.labels) + 1

        def divergence(x: jax.Array, y: jax.Array, share: jax.Array) -> jax.Array:
            order = jnp.argsort(y)
            ends = jnp.concatenate([jnp.zeros(1), jnp.cumsum(share[order])])
            # Each row knows the share of its label, so that no table of classes is needed.
            of_label = ends[jnp.searchsorted(y[order], y, "right")] - ends[jnp.searchsorted(y[order], y, "left")]
            return jnp.log(classes) + jnp.sum(share * jnp.log(jnp.where(share > 0, of_label, 1.0)))

        rows = jnp.sum(batches.present[:, 0], axis=1) * (batches.steps > 0)  # type: ignore[index]
        return Report(rows, over_rows(divergence, batches))

    def inquire(self, server: Wrapped) -> Tree:
        return ()

    def weigh(self, server: Wrapped, seen: Report, cohort: Cohort, key: jax.Array) -> tuple[Wrapped, jax.Array]:
        here = cohort.weights > 0
        sizes, _ = normalised(seen.rows, here)
        weights, total = normalised(jnp.maximum(sizes - self.a * seen.divergence + self.b, 0.0), here)
        return server, jnp.where(total > 0, weights, sizes)

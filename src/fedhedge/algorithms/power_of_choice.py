"""Power of choice: the clients with the largest losses train."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import Batches, Cohort, Tree, traced
from fedhedge.algorithms.weighting import Weighting, among, client_losses, largest
from fedhedge.algorithms.wrapper import Wrapped
from fedhedge.models.base import Functional


@traced
@dataclasses.dataclass(frozen=True)
class PowerOfChoice(Weighting):
    """Of those who got through (the paper's candidates), the m with the largest F_i(x) train; averaged as the run says.

    base: the method of the local work. size: m; with m or fewer candidates all train, and this is the base itself.
    Equal losses: the lower client number goes first. A report is one scalar.
    Raises InvalidInput for m < 1 or a base whose weights are its own.
    Source: Cho, Wang and Joshi 2020 (arXiv 2010.01243), pow-d, whose d candidates are drawn by availability here.
    """

    name: ClassVar[str] = "PowerOfChoice"
    size: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer("size", self.size, low=1)

    def probe(self, model: Functional, down: Tree, clients: Tree, batches: Batches, keys: jax.Array) -> jax.Array:
        return client_losses(model, self.at(down), batches)

    def weigh(self, server: Wrapped, seen: jax.Array, cohort: Cohort, key: jax.Array) -> tuple[Wrapped, jax.Array]:
        return server, among(cohort, largest(jnp.where(cohort.weights > 0, seen, -jnp.inf), self.size))

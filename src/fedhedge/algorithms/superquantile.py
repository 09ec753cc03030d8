"""Superquantile federated learning: only clients in the tail of the losses train."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax

from fedhedge import checks
from fedhedge.algorithms.base import Batches, Cohort, Tree, traced
from fedhedge.algorithms.simplex import weighted_quantile
from fedhedge.algorithms.weighting import Weighting, among, client_losses
from fedhedge.algorithms.wrapper import Wrapped
from fedhedge.models.base import Functional


@traced
@dataclasses.dataclass(frozen=True)
class Superquantile(Weighting):
    """Delta-FL: of those who got through, only clients with a loss in the upper tail of mass theta train.

    Each reports F_i(x) over all its rows; q is the weighted (1 - theta)-quantile of these losses, and the clients
    with F_i(x) >= q do the base's local work, averaged by the run's weights over them. theta = 1 is the base itself.
    base: the method of the local work. theta: tail mass in (0, 1]. A report is one scalar.
    Raises InvalidInput for another theta or a base whose weights are its own.
    Source: Pillutla et al. 2023 (arXiv 2112.09429), Algorithm 1; Laguel et al. 2021.
    """

    name: ClassVar[str] = "Superquantile"
    theta: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("theta", self.theta, above=0.0, high=1.0)

    def probe(self, model: Functional, down: Tree, clients: Tree, batches: Batches, keys: jax.Array) -> jax.Array:
        return client_losses(model, self.at(down), batches)

    def weigh(self, server: Wrapped, seen: jax.Array, cohort: Cohort, key: jax.Array) -> tuple[Wrapped, jax.Array]:
        return server, among(cohort, seen >= weighted_quantile(seen, cohort.weights, 1.0 - self.theta))

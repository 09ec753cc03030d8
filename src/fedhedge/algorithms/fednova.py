"""FedNova: normalised averaging, which unequal local work does not bias."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import Batches, Cohort, Tree, traced, weighted_mean
from fedhedge.algorithms.fedprox import FedProx
from fedhedge.algorithms.first_order import Stepped
from fedhedge.models.base import Functional


@traced
@dataclasses.dataclass(frozen=True)
class FedNova(FedProx):
    """FedProx's local steps, and an average of updates each divided by the local work behind it.

    d_i = (x - y_i)/(eta ||a_i||_1);  x <- x - tau_eff eta sum_S w_i d_i,  tau_eff = sum_S w_i tau_i, where tau_i is the
    number of local steps and ||a_i||_1 = tau_i for mu = 0, else [1 - (1 - eta mu)^tau_i]/(eta mu), the sum of the
    weights of the gradients within y_i. Equal steps and mu = 0 are FedAvg, bit for bit.
    step: eta, with eta mu <= 1. mu: weight of the proximal term. ball: as in FedAvg. Uplink: d scalars, one more
    (tau_i) where clients' steps differ. Raises InvalidInput for values that are not allowed.
    Source: Wang et al. 2020 (arXiv 2007.07481), for SGD with and without a proximal term; tau_eff as in its code.
    """

    name: ClassVar[str] = "FedNova"
    mu: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step * self.mu > 1.0:
            raise checks.InvalidInput("mu", self.mu, f"at most 1/step = {1.0 / self.step:g}")

    def local(self, model: Functional, down: Tree, clients: Tree, batches: Batches, keys: jax.Array) -> Any:
        up, clients, seen = super().local(model, down, clients, batches, keys)
        return Stepped.of(up, batches), clients, seen

    def aggregate(self, server: Tree, up: Stepped, cohort: Cohort) -> Tree:
        shrink = self.step * self.mu
        proximal = -jnp.expm1(up.steps * jnp.log1p(-shrink)) / jnp.where(shrink > 0.0, shrink, 1.0)
        norm = jnp.where(shrink > 0.0, proximal, up.steps)
        effective = up.common if up.own is None else jnp.sum(cohort.weights * up.steps)
        weights = cohort.weights * (effective / norm)
        # Of models, not of moves: the weight of x is then exactly 0 in the case of FedAvg.
        kept = jnp.sum(cohort.weights - weights)
        return jax.tree.map(lambda x, y: kept * x + y, server, weighted_mean(weights, up.content))

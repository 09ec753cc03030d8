"""Agnostic federated learning: the worst mixture of clients."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import Batches, Cohort, Start, Tree, traced
from fedhedge.algorithms.simplex import ascend
from fedhedge.algorithms.weighting import Weighting, client_losses, normalised
from fedhedge.algorithms.wrapper import Wrapped
from fedhedge.models.base import Functional


@traced
@dataclasses.dataclass(frozen=True)
class AgnosticFL(Weighting):
    """min over w, max over lambda in the simplex, of sum lambda_i f_i(w), by simultaneous descent and ascent.

    Clients report F_i(x); the model moves by their local work under the weights lambda_i, and
    lambda <- Proj(lambda + gamma (N/|S|) v) with v_i = F_i(x) for those who got through and 0 for others.
    With everyone, base FedAvg(step=gamma_w) and one local step this is the paper's algorithm; the weights of a round
    with fewer clients are lambda_i over their sum in S. The answer is the averaged model (`average_params`).
    base: the method of the local work. dual_step: gamma >= 0. A report is one scalar. lambda starts at the run's
    weights. Raises InvalidInput for a negative dual_step or a base whose weights are its own.
    Source: Mohri, Sivek and Suresh 2019 (arXiv 1902.00146), Stochastic-AFL.
    """

    name: ClassVar[str] = "AgnosticFL"
    dual_step: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("dual_step", self.dual_step, low=0.0)

    def init_own(self, start: Start) -> jax.Array:
        return jnp.asarray(start.mass)

    def probe(self, model: Functional, down: Tree, clients: Tree, batches: Batches, keys: jax.Array) -> jax.Array:
        return client_losses(model, self.at(down), batches)

    def weigh(self, server: Wrapped, seen: jax.Array, cohort: Cohort, key: jax.Array) -> tuple[Wrapped, jax.Array]:
        here = cohort.weights > 0
        weights, _ = normalised(server.own[cohort.clients], here)
        return Wrapped(server.base, ascend(server.own, cohort.clients, here, seen, self.dual_step)), weights

    def diagnostics(self, server: Wrapped) -> dict[str, jax.Array]:
        return super().diagnostics(server) | {"largest_lambda": jnp.max(server.own)}

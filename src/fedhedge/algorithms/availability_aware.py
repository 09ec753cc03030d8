"""Selection that prefers clients who seldom get through."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import Cohort, Start, Tree, traced
from fedhedge.algorithms.weighting import Weighting, among, inverse_inclusion, largest, never_there
from fedhedge.algorithms.wrapper import Wrapped
from fedhedge.availability.base import Law
from fedhedge.models.base import Functional


@traced
@dataclasses.dataclass(frozen=True)
class AvailabilityAware(Weighting):
    """Of those who got through, m train, drawn one by one with probability proportional to r_i = min(p_i/pi_i, 1).

    pi_i = P(i in S) by the law, p_i the run's weights over all clients. Keeping i with probability r_i would thin the
    arrivals to pi_i r_i = p_i, what is wanted, wherever p_i <= pi_i; a fixed number m comes near to that and not
    exactly (`FedAvot` is exact). Drawn as the m largest of log r_i + Gumbel noise, averaged as the run says.
    base: the method of the local work. law: the availability law (an oracle: nobody knows it in the field).
    size: m; with m or fewer arrivals all train, and this is the base itself.
    Raises InvalidInput for m < 1 or a base whose weights are its own.
    Source: the weights min(p_i/pi_i, 1) of down-sampling, as in the experiments of Rahimi and Kalogerias 2025
    (arXiv 2509.14444); successive sampling is our rule for a fixed number.
    """

    name: ClassVar[str] = "AvailabilityAware"
    oracle: ClassVar[bool] = True
    law: Law = dataclasses.field(kw_only=True)
    size: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.instance("law", self.law, Law, "a law of fedhedge.availability, such as FixedSize(size=3)")
        checks.integer("size", self.size, low=1)

    def init_own(self, start: Start) -> Tree:
        return inverse_inclusion(self.law, start.clients)

    def weigh(self, server: Wrapped, seen: Tree, cohort: Cohort, key: jax.Array) -> tuple[Wrapped, jax.Array]:
        ratio = jnp.minimum(cohort.mass * server.own[cohort.clients], 1.0)
        # One draw for each client number, so that neither the order nor the number of slots matters.
        noise = jax.vmap(lambda client: jax.random.gumbel(jax.random.fold_in(key, client)))(cohort.clients)
        score = jnp.where(cohort.weights > 0, jnp.log(ratio) + noise, -jnp.inf)
        return server, among(cohort, largest(score, self.size))

    def warnings(self, model: Functional, start: Start, rounds: int, local_steps: int) -> list[str]:
        return super().warnings(model, start, rounds, local_steps) + never_there(self.law, start.clients)

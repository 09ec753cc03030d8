"""FedAVOT: weights by masked optimal transport between importance and availability."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fedhedge import checks
from fedhedge.algorithms import transport
from fedhedge.algorithms.base import Cohort, Start, traced
from fedhedge.algorithms.weighting import Reweighting, bound
from fedhedge.algorithms.wrapper import Wrapped
from fedhedge.availability.base import MONTE_CARLO_ROUNDS, Law
from fedhedge.models.base import Functional

Importance = tuple[float, ...]
REPORTED_ERROR = 1e-4
LISTED = 10
# Server state has to be finite; no plan comes near to this.
NEVER = -1e30


class Potential(NamedTuple):
    """log u of the plan, [N], NEVER where the importance is 0; and its row error max_i |E[weight of i] - p_i|."""

    log_u: jax.Array
    error: jax.Array


@traced
@dataclasses.dataclass(frozen=True)
class FedAvot(Reweighting):
    """Uploads averaged with weights whose expectation over availability is the importance p_i.

    On the set S that came, client i weighs u_i / sum over S of u_j; u solves masked optimal transport between p and the
    law of S (see `transport.solve`; sets are enumerated up to 12 clients, drawn beyond). Minimises sum p_i f_i where
    that is feasible, for which p_i <= P(i in S | S not empty) is necessary. Where it is not, the weights are the
    nearest that the iteration finds, a warning names the clients that cannot weigh enough, and the history holds the
    row error `transport_error`. With one client a round no weight can be moved: this is the base itself.
    base: the method of the local work, for instance FedeRage (hedging on top of aligned weights).
    law: the availability law (an oracle: nobody knows it in the field). importance: p [N] in any unit; None: the run's
    weights over all clients, 1/N by default.
    Raises InvalidInput for a negative importance, one of another length than N, or a base whose weights are its own.
    Source: Rahimi and Kalogerias 2025 (arXiv 2509.14444).
    """

    name: ClassVar[str] = "FedAvot"
    oracle: ClassVar[bool] = True
    law: Law = dataclasses.field(kw_only=True)
    importance: Importance | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.instance("law", self.law, Law, "a law of fedhedge.availability, such as FixedSize(size=3)")
        if self.importance is not None:
            found = checks.numbers_of("importance", self.importance, low=0.0)
            top = max(found, default=0.0)
            if not top > 0.0:
                raise checks.InvalidInput("importance", list(found), "at least one positive number")
            # Relative to the largest first: the sum of numbers near the largest that there are would overflow.
            total = math.fsum(p / top for p in found)
            object.__setattr__(self, "importance", tuple(p / top / total for p in found))

    def fits(self, clients: int) -> None:
        super().fits(clients)
        if self.importance is not None and len(self.importance) != clients:
            raise checks.InvalidInput("importance", len(self.importance), f"{clients} numbers, one for each client")

    def plan(self, start: Start) -> transport.Plan:
        """The transport plan for a run's clients; raises InvalidInput when the importance has another length."""
        self.fits(start.clients)
        importance = tuple(start.mass.tolist()) if self.importance is None else self.importance
        return transport.solve(bound(self.law, start.clients), importance)

    def init_own(self, start: Start) -> Potential:
        plan = self.plan(start)
        return Potential(jnp.asarray(np.maximum(plan.log_u, NEVER)), jnp.asarray(plan.error))

    def arrived(self, own: Potential, cohort: Cohort) -> jax.Array:
        log_u = jnp.where(cohort.weights > 0, own.log_u[cohort.clients], NEVER)
        return jnp.where(log_u > NEVER / 2, jnp.exp(log_u - jnp.max(log_u)), 0.0)

    def diagnostics(self, server: Wrapped) -> dict[str, jax.Array]:
        return super().diagnostics(server) | {"transport_error": server.own.error}

    def warnings(self, model: Functional, start: Start, rounds: int, local_steps: int) -> list[str]:
        said = super().warnings(model, start, rounds, local_steps)
        plan = self.plan(start)
        importance = start.mass if self.importance is None else np.asarray(self.importance)
        short = np.flatnonzero(importance > plan.inclusion * (1 + 1e-9))
        if len(short):
            named = [f"client {i}: {importance[i]:.3g} > {plan.inclusion[i]:.3g}" for i in short[:LISTED]]
            more = f" and {len(short) - LISTED} more" if len(short) > LISTED else ""
            said.append(f"infeasible, p_i > P(i gets through) for {'; '.join(named)}{more}: they weigh too little")
        if plan.error > REPORTED_ERROR:
            how = "" if plan.exact else f" (estimated over {MONTE_CARLO_ROUNDS} draws)"
            said.append(f"the expected weights miss the importance by up to {plan.error:.3g}{how}")
        return said

"""Fed DRO: exact consensus ADMM for the distributionally robust risk."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fedhedge import checks
from fedhedge.algorithms.base import Algorithm, Batches, Cohort, Start, Tree, traced
from fedhedge.algorithms.consensus import (
    advance,
    check_label_cost,
    check_radius,
    initial_matrix,
    one_step,
    plain,
    radius_of_each,
)
from fedhedge.algorithms.warm_start import solve_near
from fedhedge.dro import NORMS
from fedhedge.models.base import Functional

# Residuals further apart than this factor make the penalty change by the other.
IMBALANCE, CHANGE = 4.0, 2.0


class Down(NamedTuple):
    """Broadcast: Mbar, the mean of the clients' dual totals, and rho."""

    center: jax.Array
    dual: jax.Array
    rho: jax.Array


class Client(NamedTuple):
    """Client state: its last solution, its dual total p_g, and its radius."""

    model: jax.Array
    dual: jax.Array
    radius: jax.Array


class State(NamedTuple):
    """Server state: what is broadcast, what the residuals need, and the residuals.

    models, duals [N, K, P]: each client's M_g and the mean dual total at its last turn. mass [N]: alpha_g, 0 for a
    client that has not come yet. rounds: so far.
    """

    down: Down
    models: jax.Array
    duals: jax.Array
    mass: jax.Array
    primal: jax.Array
    residual: jax.Array
    rounds: jax.Array


@traced
@dataclasses.dataclass(frozen=True, kw_only=True)
class DroAdmm(Algorithm):
    name: ClassVar[str] = "DroAdmm"
    traceable: ClassVar[bool] = False
    precision: ClassVar[str] = "float64"
    radius: float | tuple[float, ...] = 0.01
    label_cost: float = 0.5
    norm: str = "linf"
    rho: float = 0.1
    tolerance: float = 1e-4
    balancing: int = 100

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", check_radius(self.radius))
        object.__setattr__(self, "label_cost", check_label_cost(self.label_cost))
        checks.one_of("norm", self.norm, NORMS)
        checks.number("rho", self.rho, above=0.0)
        checks.number("tolerance", self.tolerance, low=0.0)
        checks.integer("balancing", self.balancing, low=0)

    def init_server(self, start: Start) -> State:
        center = initial_matrix(start)
        table = jnp.zeros((start.clients, *center.shape))
        zero = jnp.asarray(0.0)
        down = Down(center, self.rho * center, jnp.asarray(float(self.rho)))
        return State(down, table, table, jnp.zeros(start.clients), zero, zero, zero)

    def init_clients(self, clients: int, server: State) -> Client:
        models, duals = (
            jnp.broadcast_to(leaf, (clients, *leaf.shape)) for leaf in (server.down.center, server.down.dual)
        )
        return Client(models, duals, radius_of_each(self.radius, clients))

    def iterate(self, server: State) -> jax.Array:
        return server.down.center

    def broadcast(self, server: State) -> Down:
        return server.down

    def local(
        self, model: Functional, down: Down, clients: Client, batches: Batches, keys: jax.Array
    ) -> tuple[jax.Array, Client, dict[str, jax.Array]]:
        one_step(batches)
        features, labels = np.asarray(batches.features), np.asarray(batches.labels)
        mean, mean_dual, rho = (np.asarray(leaf) for leaf in down)
        models, duals, radius = (np.array(leaf) for leaf in clients)
        up, risks, gaps = np.zeros_like(models), np.zeros(len(models)), np.zeros(len(models))
        for slot in np.flatnonzero(np.asarray(batches.steps)):
            rows = np.asarray(batches.index)[slot, 0]
            if batches.present is not None:
                rows = rows[np.asarray(batches.present)[slot, 0]]
            center = mean - (duals[slot] - mean_dual) / rho
            X, y = features[rows].reshape(len(rows), -1), labels[rows]
            models[slot], risks[slot], gaps[slot] = self.solve(X, y, radius[slot], center, float(rho), models[slot])
            up[slot] = models[slot] - mean
            duals[slot] += rho * up[slot]
        state = Client(jnp.asarray(models), jnp.asarray(duals), clients.radius)
        return jnp.asarray(up), state, {"worst_case_risk": jnp.asarray(risks), "solver_gap": jnp.asarray(gaps)}

    def solve(self, X, y, radius, center, rho, earlier):
        found = solve_near(X, y, float(radius), self.label_cost, self.norm, center, rho, earlier)
        return found.coef, found.objective - 0.5 * rho * float(((found.coef - center) ** 2).sum()), found.gap

    def aggregate(self, server: State, up: jax.Array, cohort: Cohort) -> State:
        before = server.down
        center = advance(before.center, up, cohort)
        dual = before.dual + before.rho * (center - before.center)
        # A slot whose upload is not used writes nowhere.
        target = jnp.where(cohort.weights > 0, cohort.clients, len(server.mass))
        models = server.models.at[target].set(before.center + up, mode="drop")
        duals = server.duals.at[target].set(before.dual, mode="drop")
        mass = server.mass.at[target].set(cohort.mass, mode="drop")
        primal = jnp.sqrt(jnp.sum(mass * jnp.sum((models - center) ** 2, axis=(1, 2))))
        residual = jnp.linalg.norm(jnp.tensordot(mass, dual - duals, 1))
        rounds = server.rounds + 1.0
        may = (rounds <= self.balancing) & everyone(mass)
        far = may & (primal > IMBALANCE * residual)
        near = may & (residual > IMBALANCE * primal)
        rho = before.rho * jnp.where(far, CHANGE, jnp.where(near, 1.0 / CHANGE, 1.0))
        return State(Down(center, dual, rho), models, duals, mass, primal, residual, rounds)

    def finished(self, server: State) -> jax.Array:
        small = (server.primal <= self.tolerance) & (server.residual <= self.tolerance)
        return small & everyone(server.mass)

    def diagnostics(self, server: State) -> dict[str, jax.Array]:
        return {"rho": server.down.rho, "primal_residual": server.primal, "dual_residual": server.residual}

    def settings(self) -> dict[str, Any]:
        return plain(super().settings())


def everyone(mass: jax.Array) -> jax.Array:
    return jnp.sum(mass) > 1.0 - 1e-9

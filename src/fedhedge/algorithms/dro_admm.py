"""Fed DRO: exact consensus ADMM for the distributionally robust risk."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from fedhedge import checks, dro
from fedhedge.algorithms.base import Algorithm, Batches, Cohort, Start, traced
from fedhedge.algorithms.consensus import (
    advance,
    check_label_cost,
    check_radius,
    initial_matrix,
    one_step,
    radius_of_each,
)
from fedhedge.models.base import Functional

Floats = NDArray[np.float64]

# Every so many rounds, rho changes by the factor CHANGE where one residual exceeds the other by IMBALANCE.
EVERY, CHANGE, IMBALANCE = 5, 2.0, 4.0


class Down(NamedTuple):
    """Broadcast: Mbar [K, P], the mean pbar of the clients' dual totals [K, P], and rho."""

    center: jax.Array
    dual: jax.Array
    rho: jax.Array


class Client(NamedTuple):
    """Client state: its dual total p_g [K, P], its last M_g [K, P], where the next solve starts, and radius r_g."""

    dual: jax.Array
    model: jax.Array
    radius: jax.Array


class State(NamedTuple):
    """Server state: what is broadcast, what the residuals need, the residuals, and the rounds so far.

    models, duals [N, K, P]: M_g and pbar at each client's last turn. mass [N]: alpha_g, 0 until the client has come.
    """

    down: Down
    models: jax.Array
    duals: jax.Array
    mass: jax.Array
    primal_residual: jax.Array
    dual_residual: jax.Array
    rounds: jax.Array


class Solved(NamedTuple):
    """A client's solution M_g [K, P], its worst-case risk there, and the certified gap of the objective."""

    model: Floats
    risk: float
    gap: float


@traced
@dataclasses.dataclass(frozen=True, kw_only=True)
class DroAdmm(Algorithm):
    """Exact consensus ADMM: each client solves its robust problem near the consensus, to optimality.

    M_g = argmin F_g(M) + (rho/2) ||M - Mbar + u_g/rho||_F^2,
    F_g(M) = min over lam >= phi(M) of r_g lam + (1/N_g) sum_i h_i(M, lam), see `fedhedge.dro.solve_client`;
    Mbar <- Mbar + sum_g alpha_g (M_g - Mbar) over the clients at work, and u_g <- u_g + rho (M_g - Mbar), Mbar the new
    one. It tends to the minimum of sum_g alpha_g F_g, whoever comes how often, as long as everybody does. With all
    clients in each round this is Algorithm 1 of the paper (u_g = rho mu_g).

    Duals are kept unscaled, so that rho may change under them: p_g <- p_g + rho (M_g - Mbar) at the client, its mean
    pbar = sum_g alpha_g p_g at the server, and u_g = p_g - pbar, with sum_g alpha_g u_g = 0 over all clients; p_g / rho
    is z_g of `consensus`, where a client that has not come yet is spoken of.

    Stops when both residuals are at most `tolerance`, over all clients at their last turns: primal
    sqrt(sum_g alpha_g ||M_g - Mbar||_F^2) / max(1, ||Mbar||_F), and dual ||sum_g alpha_g g_g||_F with g_g the
    subgradient of F_g at M_g that its solution certifies, in the unit of a feature (with everybody at work, rho times
    the last move of Mbar). Each 5th of the first `balancing` rounds doubles rho where the primal residual is the
    larger by a factor of 4, and halves it where the dual one is; 0 keeps rho.
    radius: r, or one for each client. label_cost: kappa, infinite where labels are trusted. norm: on features.
    Client problems are solved to a certified relative gap of 1e-8 by host code. Compare objectives and not models:
    optima are not unique. Uplink: M_g - Mbar. Nothing here is private.
    Source: the second paper's Fed DRO, Algorithm 1; stopping and balancing: Boyd et al. 2011, Sections 3.3.1, 3.4.1.
    """

    name: ClassVar[str] = "DroAdmm"
    traceable: ClassVar[bool] = False
    precision: ClassVar[str] = "float64"
    radius: float | tuple[float, ...] = 0.01
    label_cost: float = 0.5
    norm: str = "linf"
    rho: float = 0.1
    tolerance: float = 1e-3
    balancing: int = 50

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", check_radius(self.radius))
        object.__setattr__(self, "label_cost", check_label_cost(self.label_cost))
        checks.one_of("norm", self.norm, dro.NORMS)
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
        dual, center = (
            jnp.broadcast_to(leaf, (clients, *leaf.shape)) for leaf in (server.down.dual, server.down.center)
        )
        return Client(dual, center, radius_of_each(self.radius, clients))

    def iterate(self, server: State) -> jax.Array:
        return server.down.center

    def broadcast(self, server: State) -> Down:
        return server.down

    def solve(
        self, X: Floats, y: Any, radius: float, center: Floats, rho: float, start: Floats | None = None
    ) -> Solved:
        """argmin F_g(M) + (rho/2) ||M - center||_F^2 over the rows X [n, P], y [n] of one client.

        start: a model near it, such as the client's last one.
        """
        found = dro.solve_client(X, y, radius, self.label_cost, self.norm, center, rho, start=start)
        return Solved(found.coef, found.objective - 0.5 * rho * float(((found.coef - center) ** 2).sum()), found.gap)

    def local(
        self, model: Functional, down: Down, clients: Client, batches: Batches, keys: jax.Array
    ) -> tuple[jax.Array, Client, dict[str, jax.Array]]:
        one_step(batches)
        features, labels, index, steps = (
            np.asarray(leaf) for leaf in (batches.features, batches.labels, batches.index[:, 0], batches.steps)
        )
        present = np.ones(index.shape, bool) if batches.present is None else np.asarray(batches.present[:, 0])
        center, mean, rho = np.asarray(down.center), np.asarray(down.dual), float(down.rho)
        duals, radius = np.array(clients.dual), np.asarray(clients.radius)
        models = np.array(clients.model)
        moved, risk, gap = np.zeros_like(duals), np.zeros(len(duals)), np.zeros(len(duals))
        for slot in np.flatnonzero(steps):
            rows = index[slot][present[slot]]
            X = features[rows].reshape(len(rows), -1)
            near = center - (duals[slot] - mean) / rho
            solved = self.solve(X, labels[rows], float(radius[slot]), near, rho, models[slot])
            models[slot], risk[slot], gap[slot] = solved.model, solved.risk, solved.gap
            moved[slot] = solved.model - center
        seen = {"worst_case_risk": jnp.asarray(risk), "solver_gap": jnp.asarray(gap)}
        fresh = Client(jnp.asarray(duals + rho * moved), jnp.asarray(models), clients.radius)
        return jnp.asarray(moved), fresh, seen

    def aggregate(self, server: State, up: jax.Array, cohort: Cohort) -> State:
        before = server.down
        center = advance(before.center, up, cohort)
        dual = before.dual + before.rho * (center - before.center)
        # A slot whose upload is not used writes nowhere.
        target = jnp.where(cohort.weights > 0, cohort.clients, len(server.mass))
        models = server.models.at[target].set(before.center + up, mode="drop")
        duals = server.duals.at[target].set(before.dual, mode="drop")
        mass = server.mass.at[target].set(cohort.mass, mode="drop")
        spread = jnp.sqrt(jnp.sum(mass * jnp.sum((models - center) ** 2, axis=(1, 2))))
        primal = spread / jnp.maximum(1.0, jnp.linalg.norm(center))
        # The certified subgradient of a client is pbar at its turn minus its new p_g.
        dual_residual = jnp.linalg.norm(jnp.tensordot(mass, duals - dual, 1))
        rounds = server.rounds + 1.0
        due = (rounds <= self.balancing) & (rounds % EVERY == 0) & _complete(mass)
        factor = jnp.where(primal > IMBALANCE * dual_residual, CHANGE, 1.0)
        factor = jnp.where(dual_residual > IMBALANCE * primal, 1.0 / CHANGE, factor)
        down = Down(center, dual, before.rho * jnp.where(due, factor, 1.0))
        return State(down, models, duals, mass, primal, dual_residual, rounds)

    def finished(self, server: State) -> jax.Array:
        largest = jnp.maximum(server.primal_residual, server.dual_residual)
        return (largest <= self.tolerance) & _complete(server.mass)

    def diagnostics(self, server: State) -> dict[str, jax.Array]:
        residuals = {"primal_residual": server.primal_residual, "dual_residual": server.dual_residual}
        return residuals | {"rho": server.down.rho}


def _complete(mass: jax.Array) -> jax.Array:
    """Whether every client has come: only then does the mass sum to one."""
    return jnp.sum(mass) > 1.0 - 1e-9

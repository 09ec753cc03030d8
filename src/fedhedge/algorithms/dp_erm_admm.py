"""DP-Fed ERM: private consensus ADMM for regularised empirical risk."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import Cohort, traced
from fedhedge.algorithms.consensus import advance
from fedhedge.algorithms.private import Noise, Private, Table
from fedhedge.dro import risk_subgradient


class Client(NamedTuple):
    """Client state: its last released model Mt, z = Mt + mu (see `consensus`), and the number of its turns."""

    model: jax.Array
    total: jax.Array
    turns: jax.Array


@traced
@dataclasses.dataclass(frozen=True, kw_only=True)
class DpErmAdmm(Private):
    """Linearised consensus ADMM for the mean Crammer-Singer loss + (reg/2) ||M||_F^2, with noise on each model.

    At the client's last released model Mt, in its k-th turn:
        G = (1/N) sum_i d l(Mt; x_i, y_i) + reg Mt;  Mt <- (Mt/eta_k + rho (Mbar - mu) - G)/(1/eta_k + rho) + noise
    with deviation noise * 2 sqrt(2) L / (N (rho + 1/eta_k)), and the consensus and duals of `consensus`. Steps:
    eta_k = c_w / (sqrt(2 k) M_w),  M_w^2 = (sqrt(2) L + reg c_w)^2 + K P sigma_G^2, sigma_G = noise * 2 sqrt(2) L / N.
    reg: weight of the regulariser. rho: ADMM penalty. diameter: c_w, the scale of ||M||_F that the steps are made
    for: a fixed number. (The norm of a solution on the private data is not private.)
    noise, row_bound, neighbouring tables: see `Private`. Uplink: Mt - Mbar.
    Source: the second paper's DP-Fed ERM baseline, after Huang et al. 2019 (arXiv 1808.10101).
    """

    name: ClassVar[str] = "DpErmAdmm"
    reg: float = 1e-3
    rho: float = 0.8
    diameter: float = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("reg", self.reg, low=0.0)
        checks.number("rho", self.rho, above=0.0)
        checks.number("diameter", self.diameter, above=0.0)

    def init_clients(self, clients: int, server: jax.Array) -> Client:
        models = jnp.broadcast_to(server, (clients, *server.shape))
        return Client(models, models, jnp.zeros(clients))

    def shapes(self, down: jax.Array) -> tuple[tuple[int, ...], ...]:
        return (down.shape,)

    def inverse_step(self, client: Client, rows: jax.Array) -> jax.Array:
        """1/eta_k of a client's next turn."""
        slope = math.sqrt(2.0) * self.row_bound + self.reg * self.diameter
        bound = jnp.sqrt(slope**2 + client.model.size * self.gradient_deviation(rows) ** 2)
        return jnp.sqrt(2.0 * (client.turns + 1.0)) * bound / self.diameter

    def deviations(self, down: jax.Array, client: Client, rows: jax.Array) -> Noise:
        return (self.gradient_deviation(rows) / (self.rho + self.inverse_step(client, rows)),)

    def turn(self, down: jax.Array, client: Client, table: Table, noise: Noise) -> tuple[jax.Array, Client]:
        model, total, turns = client
        gradient, _ = risk_subgradient(model, 0.0, table.features, table.labels, math.inf, table.weights, jnp)
        gradient += self.reg * model
        inverse = self.inverse_step(client, table.rows)
        target = inverse * model + self.rho * (2.0 * down - total) - gradient
        fresh = target / (inverse + self.rho) + noise[0]
        return fresh - down, Client(fresh, total + fresh - down, turns + 1.0)

    def aggregate(self, server: jax.Array, up: jax.Array, cohort: Cohort) -> jax.Array:
        return advance(server, up, cohort)

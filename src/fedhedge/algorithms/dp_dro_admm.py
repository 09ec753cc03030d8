"""DP-Fed DRO: private consensus ADMM for the distributionally robust risk."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar, NamedTuple, Self

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import Cohort, Start, traced
from fedhedge.algorithms.consensus import advance, check_label_cost, check_radius, radius_of_each
from fedhedge.algorithms.private import Noise, Private, Table
from fedhedge.dro import NORMS, phi, phi_subgradient, risk_subgradient
from fedhedge.models.base import Functional
from fedhedge.privacy import Privacy, calibrate
from fedhedge.privacy.calibration import Accounting

LAMBDA_SHARE = 0.05
# The paper's bound on the multiplier of lam >= phi(M), and what each variant takes where nothing is given.
PAPER_MULTIPLIER = 0.4
VARIANTS = {
    "default": {"step": 8.0, "lambda_step": 1.0, "lambda_start": 5.0},
    "paper": {"step": 1.0, "lambda_step": 1.0, "lambda_start": 0.0},
}


class Client(NamedTuple):
    """Client state: last released Mt, z = Mt + mu (see `consensus`), lambda, multiplier tau, and the radius r."""

    model: jax.Array
    total: jax.Array
    lambda_: jax.Array
    multiplier: jax.Array
    radius: jax.Array


@traced
@dataclasses.dataclass(frozen=True, kw_only=True)
class DpDroAdmm(Private):
    """todo"""

    name: ClassVar[str] = "DpDroAdmm"
    rounds: int
    lambda_noise: float = 0.0
    radius: float | tuple[float, ...] = 0.01
    label_cost: float = 0.5
    norm: str = "l1"
    rho: float = 0.8
    variant: str = "default"
    step: float | None = None
    lambda_step: float | None = None
    lambda_start: float | None = None
    penalty: float = 0.1
    slope_bound: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer("rounds", self.rounds, low=1)
        object.__setattr__(self, "radius", check_radius(self.radius))
        object.__setattr__(self, "label_cost", check_label_cost(self.label_cost))
        checks.one_of("norm", self.norm, NORMS)
        checks.number("rho", self.rho, above=0.0)
        checks.one_of("variant", self.variant, VARIANTS)
        for name, value in VARIANTS[self.variant].items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, 0.0 if name == "lambda_start" and math.isinf(self.label_cost) else value)
        checks.number("step", self.step, above=0.0)
        checks.number("lambda_step", self.lambda_step, above=0.0)
        checks.number("lambda_start", self.lambda_start, low=0.0)
        checks.number("penalty", self.penalty, low=0.0)
        checks.number("lambda_noise", self.lambda_noise, low=0.0)

    @classmethod
    def calibrated(cls, privacy: Privacy, rounds: int, *, accounting: Accounting = "exact", **settings: Any) -> Self:
        trusted = settings.get("label_cost") == math.inf
        noise = calibrate(privacy, rounds, lambda_share=0.0 if trusted else LAMBDA_SHARE, accounting=accounting)
        return cls(noise=noise.model, lambda_noise=noise.lambda_ or 0.0, rounds=rounds, **settings)

    @property
    def finite_cost(self) -> jax.Array:
        """kappa, or 0 where labels are trusted."""
        return jnp.where(jnp.isinf(self.label_cost), 0.0, self.label_cost)

    def init_clients(self, clients: int, server: jax.Array) -> Client:
        models = jnp.broadcast_to(server, (clients, *server.shape))
        start = jnp.full(clients, jnp.asarray(self.lambda_start, float))
        return Client(models, models, start, jnp.zeros(clients), radius_of_each(self.radius, clients))

    def shapes(self, down: jax.Array) -> tuple[tuple[int, ...], ...]:
        return down.shape, ()

    def inverse_steps(self, client: Client, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
        """1/eta and 1/nu of a client with N = `rows` rows."""
        paper = self.variant == "paper"
        bound = PAPER_MULTIPLIER if paper else client.radius
        slope = self.slope_bound
        if slope is None:
            slope = 1.0 if paper else valid_slope(self.norm, client.model.shape[1])
        in_model = math.sqrt(2.0) * self.row_bound + bound * slope
        in_model = jnp.sqrt(in_model**2 + client.model.size * self.gradient_deviation(rows) ** 2)
        in_lambda = jnp.maximum(client.radius, self.finite_cost - client.radius) + bound
        in_lambda = jnp.sqrt(in_lambda**2 + (self.lambda_noise * self.finite_cost / rows) ** 2)
        return in_model * math.sqrt(self.rounds) / self.step, in_lambda * math.sqrt(self.rounds) / self.lambda_step

    def deviations(self, down: jax.Array, client: Client, rows: jax.Array) -> Noise:
        in_model, in_lambda = self.inverse_steps(client, rows)
        return (
            self.gradient_deviation(rows) / (self.rho + in_model),
            self.lambda_noise * self.finite_cost / (rows * in_lambda),
        )

    def turn(self, down: jax.Array, client: Client, table: Table, noise: Noise) -> tuple[jax.Array, Client]:
        model, total, lambda_, multiplier, radius = client
        in_model, in_lambda = self.inverse_steps(client, table.rows)
        gradient, slope = risk_subgradient(
            model, lambda_, table.features, table.labels, self.label_cost, table.weights, jnp
        )
        norm = phi(model, self.norm, jnp)
        if self.variant == "paper":
            force = multiplier + self.penalty * jnp.maximum(0.0, norm - lambda_)
            lambda_ = lambda_ - (radius + slope - force) / in_lambda + noise[1]
        else:
            lambda_ = lambda_ - (radius + slope) / in_lambda + noise[1]
            force = jnp.clip((norm - lambda_) * in_lambda, 0.0, radius)
        gradient += force * phi_subgradient(model, self.norm, jnp)
        target = in_model * model + self.rho * (2.0 * down - total) - gradient
        fresh = target / (in_model + self.rho) + noise[0]
        if self.variant == "paper":
            multiplier = jnp.maximum(0.0, multiplier + self.penalty * (phi(fresh, self.norm, jnp) - lambda_))
        else:
            lambda_ = jnp.maximum(lambda_, phi(fresh, self.norm, jnp))
        return fresh - down, Client(fresh, total + fresh - down, lambda_, multiplier, radius)

    def aggregate(self, server: jax.Array, up: jax.Array, cohort: Cohort) -> jax.Array:
        return advance(server, up, cohort)


def valid_slope(norm: str, features: int) -> float:
    """V: the largest Frobenius norm of a subgradient of phi, sqrt(2), and sqrt(2 P) where the dual norm is l1."""
    return math.sqrt(2.0 * features) if norm == "linf" else math.sqrt(2.0)

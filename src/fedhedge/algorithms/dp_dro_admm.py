"""DP-Fed DRO: private consensus ADMM for the distributionally robust risk."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar, NamedTuple, Self

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import Cohort, Start, traced
from fedhedge.algorithms.consensus import advance, check_label_cost, check_radius, initial_matrix, radius_of_each
from fedhedge.algorithms.private import Noise, Private, Table
from fedhedge.dro import NORMS, phi, phi_subgradient, risk_subgradient
from fedhedge.models.base import Functional
from fedhedge.privacy import Privacy, calibrate
from fedhedge.privacy.calibration import Accounting

# Part of each round's mu^2 that is spent on lambda.
LAMBDA_SHARE = 0.05
# The paper's bound C on the multiplier, and its V.
PAPER_MULTIPLIER, PAPER_SLOPE = 0.4, 1.0
VARIANTS = {
    "default": {"step": 16.0, "lambda_step": 1.0, "lambda_start": 5.0, "averaged": 0.25},
    "paper": {"step": 1.0, "lambda_step": 1.0, "lambda_start": 0.0, "averaged": 0.0},
}


class State(NamedTuple):
    """Server state: Mbar, which is broadcast, and the model that is the result, both [K, P]; the rounds so far."""

    center: jax.Array
    model: jax.Array
    rounds: jax.Array


class Client(NamedTuple):
    """Client state: its last released model Mt and z = Mt + mu (see `consensus`), both [K, P]; lambda, tau, r_g."""

    model: jax.Array
    total: jax.Array
    lambda_: jax.Array
    multiplier: jax.Array
    radius: jax.Array


@traced
@dataclasses.dataclass(frozen=True, kw_only=True)
class DpDroAdmm(Private):
    """Linearised consensus ADMM for the worst-case risk of `DroAdmm`, with noise on each model and each lambda.

    In a turn, at the client's last released pair (Mt, lt), with h_i and phi of `fedhedge.dro`:
        lt <- lt - nu (r + (1/N) sum_i d_lam h_i - c) + N(0, s_lam^2)
        G = (1/N) sum_i d_M h_i + c dphi(Mt)
        Mt <- (Mt/eta + rho (Mbar - mu) - G)/(1/eta + rho) + N(0, s_M^2)
    with the consensus and duals of `consensus`; lt stays at the client. The deviations are noise and lambda_noise times
    the sensitivities 2 sqrt(2) L/(N (rho + 1/eta)) and kappa nu/N. (lambda depends on a discontinuous branch of h: its
    noise cannot be dropped although it is not sent.) Steps for a horizon of T = `rounds` turns:
        eta = c_M/(M_1 sqrt(T)),   M_1^2 = (sqrt(2) L + C V)^2 + K P (noise 2 sqrt(2) L/N)^2
        nu = c_lam/(M_2 sqrt(T)),  M_2^2 = (max(r, kappa - r) + C)^2 + (lambda_noise kappa/N)^2
    The force c stands for lam >= phi(M); at the optimum it is r + mean d_lam h, in [0, r].
    - "default": lambda moves first, with c = 0, which releases its slope s = r + mean d_lam h (with noise); then c is a
      running mean of the slopes, tau <- tau + (s - tau)/sqrt(T), cut to [0, r]; at last lt <- max(lt, phi(Mt)) at the
      new Mt. All of this is post-processing of lambda's release, and the model step is private given it (adaptive
      composition: mu^2 = mu_M^2 + mu_lam^2 as ever). C = r. The result is the mean of Mbar over the last quarter of the
      T rounds, in which less of the noise is left than in the last one (suffix averaging, Rakhlin et al. 2012).
    - "paper": Algorithm 2 as it stands, its result the last Mbar, c = tau + gamma [phi(Mt) - lt]_+ at the start of the
      turn for both steps, and tau <- max(0, tau + gamma (phi(Mt) - lt)) after them; C = 0.4, V = 1. It may diverge,
      with norm "linf" above all.

    noise, lambda_noise: sigma/sensitivity (see `calibrated`); lambda_noise is needed with noise, unless labels are
    trusted. rounds: T. radius: r, or one for each client. label_cost: kappa, infinite where labels are trusted. norm:
    on features; "l1" suffers least from noise. rho: ADMM penalty. step, lambda_step, lambda_start: c_M, c_lam, lt at
    first; None takes the variant's: 16, 1, 5 (0 with trusted labels), and 1, 1, 0. averaged: the share of the T rounds
    whose mean is the result, 0 for the last one alone; None takes the variant's, 1/4 and 0. penalty: gamma.
    slope_bound: V; None takes the variant's, the valid one being sqrt(2), or sqrt(2 P) for norm "linf".
    row_bound, neighbouring tables: see `Private`. Uplink: Mt - Mbar. Without noise it tends to the optimum of
    `DroAdmm` as T grows, for a step of the order of ||M||_F. Source: the second paper's DP-Fed DRO, Algorithm 2.
    """

    name: ClassVar[str] = "DpDroAdmm"
    rounds: int
    lambda_noise: float = 0.0
    radius: float | tuple[float, ...] = 0.01
    label_cost: float = 0.5
    norm: str = "l1"
    rho: float = 0.8
    variant: str = "default"
    step: float = None  # type: ignore[assignment]  # resolved below: the default depends on the variant
    lambda_step: float = None  # type: ignore[assignment]
    lambda_start: float = None  # type: ignore[assignment]
    averaged: float = None  # type: ignore[assignment]
    penalty: float = 0.1
    slope_bound: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer("rounds", self.rounds, low=1)
        object.__setattr__(self, "radius", check_radius(self.radius))
        object.__setattr__(self, "label_cost", check_label_cost(self.label_cost))
        checks.one_of("norm", self.norm, NORMS)
        checks.number("rho", self.rho, above=0.0)
        defaults = dict(VARIANTS[checks.one_of("variant", self.variant, VARIANTS)])
        trusted = math.isinf(self.label_cost)
        if trusted:
            defaults["lambda_start"] = 0.0
        for name, value in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        checks.number("step", self.step, above=0.0)
        checks.number("lambda_step", self.lambda_step, above=0.0)
        checks.number("lambda_start", self.lambda_start, low=0.0)
        checks.number("averaged", self.averaged, low=0.0, high=1.0)
        checks.number("penalty", self.penalty, low=0.0)
        if self.slope_bound is not None:
            checks.number("slope_bound", self.slope_bound, low=0.0)
        checks.number("lambda_noise", self.lambda_noise, low=0.0)
        if self.noise > 0.0 and self.lambda_noise == 0.0 and not trusted and self.label_cost > 0.0:
            hint = "lambda depends on the rows, although it is not sent"
            raise checks.InvalidInput("lambda_noise", self.lambda_noise, "a number above 0 where noise is", hint)

    @classmethod
    def calibrated(cls, privacy: Privacy, rounds: int, *, accounting: Accounting = "exact", **settings: Any) -> Self:
        """The method with the least noise that keeps to `privacy` over `rounds` turns, 5 % of mu^2 spent on lambda.

        Nothing is spent there with label_cost=inf. The paper's noise is variant="paper", accounting="paper", and a
        budget per="round". settings: the other arguments. Raises InvalidInput, see `fedhedge.privacy.calibrate`.
        """
        trusted = settings.get("label_cost") == math.inf
        noise = calibrate(privacy, rounds, lambda_share=0.0 if trusted else LAMBDA_SHARE, accounting=accounting)
        return cls(noise=noise.model, lambda_noise=noise.lambda_ or 0.0, rounds=rounds, **settings)

    @property
    def finite_cost(self) -> jax.Array:
        """kappa, or 0 where labels are trusted."""
        return jnp.where(jnp.isinf(self.label_cost), 0.0, self.label_cost)

    def init_server(self, start: Start) -> State:
        center = initial_matrix(start)
        return State(center, center, jnp.asarray(0.0))

    def broadcast(self, server: State) -> jax.Array:
        return server.center

    def iterate(self, server: State) -> jax.Array:
        return server.model

    def init_clients(self, clients: int, server: State) -> Client:
        models = jnp.broadcast_to(server.center, (clients, *server.center.shape))
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
            slope = PAPER_SLOPE if paper else valid_slope(self.norm, client.model.shape[1])
        in_model = math.sqrt(2.0) * self.row_bound + bound * slope
        in_model = jnp.sqrt(in_model**2 + client.model.size * self.gradient_deviation(rows) ** 2)
        in_lambda = jnp.maximum(client.radius, self.finite_cost - client.radius) + bound
        in_lambda = jnp.sqrt(in_lambda**2 + (self.lambda_noise * self.finite_cost / rows) ** 2)
        # Without a radius and a label cost lambda has no slope, and any step will do.
        in_lambda = jnp.where(in_lambda > 0.0, in_lambda, 1.0)
        return in_model * math.sqrt(self.rounds) / self.step, in_lambda * math.sqrt(self.rounds) / self.lambda_step

    def deviations(self, down: jax.Array, client: Client, rows: jax.Array) -> Noise:
        in_model, in_lambda = self.inverse_steps(client, rows)
        on_lambda = self.lambda_noise * self.finite_cost / (rows * in_lambda)
        return self.gradient_deviation(rows) / (self.rho + in_model), on_lambda

    def turn(self, down: jax.Array, client: Client, table: Table, noise: Noise) -> tuple[jax.Array, Client]:
        model, total, lambda_, multiplier, radius = client
        in_model, in_lambda = self.inverse_steps(client, table.rows)
        gradient, slope = risk_subgradient(
            model, lambda_, table.features, table.labels, self.label_cost, table.weights, jnp
        )
        if self.variant == "paper":
            force = multiplier + self.penalty * jnp.maximum(0.0, phi(model, self.norm, jnp) - lambda_)
            lambda_ = lambda_ - (radius + slope - force) / in_lambda + noise[1]
        else:
            move = (radius + slope) / in_lambda - noise[1]
            lambda_ = lambda_ - move
            multiplier += (move * in_lambda - multiplier) / math.sqrt(self.rounds)
            force = jnp.clip(multiplier, 0.0, radius)
        gradient += force * phi_subgradient(model, self.norm, jnp)
        target = in_model * model + self.rho * (2.0 * down - total) - gradient
        fresh = target / (in_model + self.rho) + noise[0]
        norm = phi(fresh, self.norm, jnp)
        if self.variant == "paper":
            multiplier = jnp.maximum(0.0, multiplier + self.penalty * (norm - lambda_))
        else:
            lambda_ = jnp.maximum(lambda_, norm)
        return fresh - down, Client(fresh, total + fresh - down, lambda_, multiplier, radius)

    def aggregate(self, server: State, up: jax.Array, cohort: Cohort) -> State:
        center, rounds = advance(server.center, up, cohort), server.rounds + 1.0
        # Rounds in the mean; before its first one the model is the latest.
        share = 1.0 / jnp.maximum(1.0, rounds - jnp.floor((1.0 - self.averaged) * self.rounds))
        return State(center, server.model + share * (center - server.model), rounds)

    def warnings(self, model: Functional, start: Start, rounds: int, local_steps: int) -> list[str]:
        if rounds <= self.rounds:
            return []
        made = f"steps and, where calibrated, noise are made for {self.rounds} rounds, and this run may take {rounds}"
        return [f"{made}: a client that comes more often than that spends more than its budget"]


def valid_slope(norm: str, features: int) -> float:
    """V: the largest Frobenius norm of a subgradient of phi, sqrt(2), and sqrt(2 P) where the dual norm is l1."""
    return math.sqrt(2.0 * features) if norm == "linf" else math.sqrt(2.0)

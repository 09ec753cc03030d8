"""FedeRage: federated averaging of the pair (model, tail threshold) under a mean-CVaR objective."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import Cohort, Start, Tree, traced
from fedhedge.algorithms.first_order import FirstOrder, project_ball
from fedhedge.models.base import Functional

CAP_FACTOR = 2.0
NETWORK_STEP_LIMIT = 0.2


class Pair(NamedTuple):
    """The iterate of FedeRage: model parameters theta and the scalar beta."""

    theta: Tree
    beta: jax.Array


class State(NamedTuple):
    """Server state, sent as it is: the pair, and the upper end of B."""

    pair: Pair
    cap: jax.Array


@traced
@dataclasses.dataclass(frozen=True)
class FedeRage(FirstOrder):
    """Federated averaging of (theta, beta) for (1 - gamma) E f + gamma CVaR_alpha(f), agnostic to who shows up.

    One local step, with f the mini-batch loss before the step:
        w = (1 - gamma) + (gamma/alpha) 1{f >= beta}
        theta <- Proj_C(theta - eta w grad f);   beta <- Proj_B(beta - eta_beta (1 - w))
    The server averages the pairs. gamma = 0 is FedAvg; so is alpha = 1 as long as no loss falls below beta_start.
    alpha: tail mass in (0, 1]. gamma: weight on the tail in [0, 1]. step: eta; None takes 0.1/kappa with
    kappa = (1 - gamma) + gamma/alpha, the bound on w. beta_step: eta_beta. beta_start: beta_0.
    cap: upper end of B = [0, cap]; None takes twice the mean training loss of the initial model. ball: radius of C.
    Uplink: one scalar more than FedAvg. Raises InvalidInput for values outside these sets.
    Source: arXiv 2609.21057, Algorithm 2, eq. (13)-(14).
    """

    name: ClassVar[str] = "FedeRage"
    step: float = None  # type: ignore[assignment]  # resolved below: the default depends on alpha and gamma
    alpha: float = 0.05
    gamma: float = 0.75
    beta_step: float = 0.005
    beta_start: float = 0.0
    cap: float | None = None

    def __post_init__(self) -> None:
        checks.number("alpha", self.alpha, above=0.0, high=1.0)
        checks.number("gamma", self.gamma, low=0.0, high=1.0)
        checks.number("beta_step", self.beta_step, low=0.0)
        checks.number("beta_start", self.beta_start, low=0.0)
        if self.cap is not None:
            checks.number("cap", self.cap, low=self.beta_start)
        if self.step is None:
            object.__setattr__(self, "step", 0.1 / self.kappa)
        super().__post_init__()

    @property
    def kappa(self) -> float:
        """kappa = (1 - gamma) + gamma/alpha, the largest weight of a local step."""
        return 1.0 - self.gamma + self.gamma / self.alpha

    def init_server(self, start: Start) -> State:
        cap = CAP_FACTOR * start.loss() if self.cap is None else self.cap
        return State(Pair(start.params, jnp.asarray(float(self.beta_start))), jnp.asarray(float(cap)))

    def start(self, down: State) -> Pair:
        return down.pair

    def iterate(self, server: State) -> Pair:
        return server.pair

    def parameters(self, iterate: Pair) -> Tree:
        return iterate.theta

    def rates(self) -> Pair:
        return Pair(self.step, self.beta_step)  # type: ignore[arg-type]

    def direction(self, loss: jax.Array, gradient: Tree, point: Pair, down: State, client: Tree) -> Pair:
        # w - 1 in this form is exactly 0 at gamma = 0 and, in the tail, at alpha = 1.
        excess = self.gamma * ((loss >= point.beta) / self.alpha - 1.0)
        return Pair(jax.tree.map(lambda g: (1.0 + excess) * g, gradient), -excess)

    def project(self, point: Pair, down: State) -> Pair:
        return Pair(project_ball(point.theta, self.ball), jnp.clip(point.beta, 0.0, down.cap))

    def observe(self, loss: jax.Array, point: Pair) -> dict[str, jax.Array]:
        return {"local_loss": loss, "tail_rate": (loss >= point.beta).astype(loss.dtype)}

    def aggregate(self, server: State, up: Pair, cohort: Cohort) -> State:
        return State(super().aggregate(server, up, cohort), server.cap)

    def diagnostics(self, server: State) -> dict[str, jax.Array]:
        return {"beta": server.pair.beta}

    def warnings(self, model: Functional, start: Start, rounds: int, local_steps: int) -> list[str]:
        said = []
        if not model.convex and self.step * self.kappa > NETWORK_STEP_LIMIT:
            said.append(
                f"step * kappa is {self.step:g} * {self.kappa:g} = {self.step * self.kappa:.3g}: networks collapse "
                f"above about {NETWORK_STEP_LIMIT:g}; take step <= {NETWORK_STEP_LIMIT / self.kappa:.3g}"
            )
        drift = self.gamma * self.beta_step * local_steps
        peak = start.loss() if self.alpha < 1.0 else 0.0
        needed = math.ceil(peak / drift) if drift > 0.0 else 0
        if needed > rounds:
            said.append(
                f"beta needs about {needed} rounds to come down from its first overshoot (initial loss {peak:.3g} over "
                f"gamma * beta_step * local_steps = {drift:.3g}), and the run has {rounds}: until then most steps have "
                f"weight 1 - gamma = {1.0 - self.gamma:.3g}; take more rounds or a larger beta_step"
            )
        return said

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"kappa": self.kappa}

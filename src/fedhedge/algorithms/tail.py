"""What the methods that weight the tail of the losses share: FedeRage and its relatives."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import Start, Tree
from fedhedge.algorithms.first_order import FirstOrder, project_ball
from fedhedge.models.base import Functional

CAP_FACTOR = 2.0
NETWORK_STEP_LIMIT = 0.2


class Pair(NamedTuple):
    """The iterate: model parameters theta, and beta, a scalar or one entry for each tail."""

    theta: Tree
    beta: jax.Array


class State(NamedTuple):
    """Server state, sent as it is: the pair, and the upper end of B."""

    pair: Pair
    cap: jax.Array


@dataclasses.dataclass(frozen=True)
class TailWeighted(FirstOrder):
    """Local steps theta <- Proj_C(theta - eta w grad f), beta <- Proj_B(beta - eta_beta (1 - w)), then the mean pair.

    A subclass gives `excess`, the parts of w - 1, one for each entry of beta, and `kappa`, the bound on w.
    step: eta; None takes 0.1/kappa. beta_step: eta_beta. beta_start: beta_0. cap: upper end of B = [0, cap]; None
    takes twice the mean training loss of the initial model.
    """

    step: float = None  # type: ignore[assignment]  # resolved below: the default depends on kappa
    beta_step: float = 0.005
    beta_start: float = 0.0
    cap: float | None = None

    def __post_init__(self) -> None:
        checks.number("beta_step", self.beta_step, low=0.0)
        checks.number("beta_start", self.beta_start, low=0.0)
        if self.cap is not None:
            checks.number("cap", self.cap, low=self.beta_start)
        if self.step is None:
            object.__setattr__(self, "step", 0.1 / self.kappa)
        super().__post_init__()

    @property
    @abstractmethod
    def kappa(self) -> float:
        """The largest weight of a local step."""

    @abstractmethod
    def excess(self, loss: jax.Array, beta: jax.Array, down: Any) -> jax.Array:
        """The parts of w - 1, shaped like beta; their sum is w - 1."""

    @property
    def tails(self) -> tuple[int, ...]:
        """Shape of beta."""
        return ()

    @property
    def levels(self) -> tuple[tuple[float, float], ...]:
        """(alpha, gamma) of each tail that the settings fix."""
        return ()

    def init_server(self, start: Start) -> State:
        cap = CAP_FACTOR * start.loss() if self.cap is None else self.cap
        return State(Pair(start.params, jnp.full(self.tails, float(self.beta_start))), jnp.asarray(float(cap)))

    def start(self, down: State) -> Pair:
        return down.pair

    def iterate(self, server: State) -> Pair:
        return server.pair

    def with_iterate(self, server: State, iterate: Pair) -> State:
        return server._replace(pair=iterate)

    def parameters(self, iterate: Pair) -> Tree:
        return iterate.theta

    def with_parameters(self, iterate: Pair, params: Tree) -> Pair:
        return iterate._replace(theta=params)

    def rates(self) -> Pair:
        return Pair(self.step, self.beta_step)  # type: ignore[arg-type]

    def direction(self, loss: jax.Array, gradient: Tree, point: Pair, down: State, client: Tree) -> Pair:
        excess = self.excess(loss, point.beta, down)
        return Pair(jax.tree.map(lambda g: (1.0 + jnp.sum(excess)) * g, gradient), -excess)

    def project(self, point: Pair, down: State) -> Pair:
        return Pair(project_ball(point.theta, self.ball), jnp.clip(point.beta, 0.0, down.cap))

    def warnings(self, model: Functional, start: Start, rounds: int, local_steps: int) -> list[str]:
        said = []
        if not model.convex and self.step * self.kappa > NETWORK_STEP_LIMIT:
            said.append(
                f"step * kappa is {self.step:g} * {self.kappa:g} = {self.step * self.kappa:.3g}: networks collapse "
                f"above about {NETWORK_STEP_LIMIT:g}; take step <= {NETWORK_STEP_LIMIT / self.kappa:.3g}"
            )
        drifts = [gamma * self.beta_step * local_steps for alpha, gamma in self.levels if alpha < 1.0]
        drift = min((one for one in drifts if one > 0.0), default=None)
        needed = 0 if drift is None else math.ceil(start.loss() / drift)
        if drift is not None and needed > rounds:
            said.append(
                f"beta needs about {needed} rounds to come down from its first overshoot (initial loss "
                f"{start.loss():.3g} over gamma * beta_step * local_steps = {drift:.3g}), and the run has {rounds}: "
                f"until then most steps lack that tail's part of the weight; take more rounds or a larger beta_step"
            )
        return said

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"kappa": self.kappa}

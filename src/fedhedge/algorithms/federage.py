"""FedeRage: federated averaging of the pair (model, tail threshold) under a mean-CVaR objective."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import jax

from fedhedge import checks
from fedhedge.algorithms.base import traced
from fedhedge.algorithms.tail import Pair, State, TailWeighted


@traced
@dataclasses.dataclass(frozen=True)
class FedeRage(TailWeighted):
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
    alpha: float = 0.05
    gamma: float = 0.75

    def __post_init__(self) -> None:
        checks.number("alpha", self.alpha, above=0.0, high=1.0)
        checks.number("gamma", self.gamma, low=0.0, high=1.0)
        super().__post_init__()

    @property
    def kappa(self) -> float:
        """kappa = (1 - gamma) + gamma/alpha, the largest weight of a local step."""
        return 1.0 - self.gamma + self.gamma / self.alpha

    @property
    def levels(self) -> tuple[tuple[float, float], ...]:
        return ((self.alpha, self.gamma),)

    def excess(self, loss: jax.Array, beta: jax.Array, down: Any) -> jax.Array:
        # w - 1 in this form is exactly 0 at gamma = 0 and, in the tail, at alpha = 1.
        return self.gamma * ((loss >= beta) / self.alpha - 1.0)

    def observe(self, loss: jax.Array, point: Pair) -> dict[str, jax.Array]:
        return {"local_loss": loss, "tail_rate": (loss >= point.beta).astype(loss.dtype)}

    def diagnostics(self, server: State) -> dict[str, jax.Array]:
        return {"beta": server.pair.beta}

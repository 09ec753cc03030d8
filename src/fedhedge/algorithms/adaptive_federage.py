"""FedeRage that chooses alpha and gamma on the fly, for a stated tail target."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import Batches, Cohort, Start, Tree, traced, weighted_mean
from fedhedge.algorithms.tail import Pair, TailWeighted
from fedhedge.models.base import Functional


class State(NamedTuple):
    """Server state, sent as it is: the pair, the upper end of B, and the alpha and gamma in force."""

    pair: Pair
    cap: jax.Array
    alpha: jax.Array
    gamma: jax.Array


class Report(NamedTuple):
    """A client's upload: its pair, and means over its local steps of 1{f > target} and of beta + (f - beta)_+/alpha."""

    pair: Pair
    above: jax.Array
    tail: jax.Array


@traced
@dataclasses.dataclass(frozen=True)
class AdaptiveFedeRage(TailWeighted):
    """FedeRage that hedges as much as a stated target asks for: min E f subject to CVaR_alpha(f) <= target.

    The Lagrangian E f + lambda (CVaR_alpha(f) - target) is FedeRage's objective with gamma = lambda/(1 + lambda), up to
    a factor. Descent in (theta, beta), ascent in lambda, written for gamma; after each round, with means over S:
        gamma <- Proj_[0, 1](gamma + gamma_step (mean(beta + (f - beta)_+/alpha) - target))
        share <- share + memory (mean 1{f > target} - share), from 1;   alpha_t = max(alpha, share)
    The local steps are FedeRage's with (alpha_t, gamma_t), beta without the factor gamma, so that it finds the quantile
    also while gamma = 0. alpha_t starts at 1, where everything is above the target and the tail is everybody: the tail
    is at any time what fails the target, and never less than alpha. Where the target is met, P(f > target) < alpha,
    so that alpha_t = alpha at the end. gamma ends at 0 when FedAvg meets the target, at 1 when nothing does (the tail
    is then what stays above), and between with CVaR_alpha = target. Expectations are under availability's weights.
    target: in units of the loss. alpha: tail mass in (0, 1]. gamma_step: step of gamma per unit of loss. memory: in
    (0, 1]. step: eta; None takes 0.1 alpha. The rest as in FedeRage, kappa = 1/alpha. Uplink: d + 3 scalars.
    Raises InvalidInput for values outside these sets. Source: arXiv 2609.21057, open directions; the rule is ours.
    """

    name: ClassVar[str] = "AdaptiveFedeRage"
    target: float = 1.0
    alpha: float = 0.05
    gamma_step: float = 0.005
    memory: float = 0.02

    def __post_init__(self) -> None:
        checks.number("target", self.target, low=0.0)
        checks.number("alpha", self.alpha, above=0.0, high=1.0)
        checks.number("gamma_step", self.gamma_step, low=0.0)
        checks.number("memory", self.memory, above=0.0, high=1.0)
        super().__post_init__()

    @property
    def kappa(self) -> float:
        """kappa = 1/alpha, the largest weight that a local step can come to have."""
        return 1.0 / self.alpha

    def init_server(self, start: Start) -> State:  # type: ignore[override]
        return State(*super().init_server(start), alpha=jnp.ones(()), gamma=jnp.zeros(()))

    def direction(self, loss: jax.Array, gradient: Tree, point: Pair, down: State, client: Tree) -> Pair:  # type: ignore[override]
        excess = self.excess(loss, point.beta, down)
        return Pair(jax.tree.map(lambda g: (1.0 + down.gamma * excess) * g, gradient), -excess)

    def excess(self, loss: jax.Array, beta: jax.Array, down: State) -> jax.Array:
        return (loss >= beta) / down.alpha - 1.0

    def observe(self, loss: jax.Array, point: Pair) -> dict[str, jax.Array]:
        return {
            "local_loss": loss,
            "above_target": (loss > self.target).astype(loss.dtype),
            "tail_loss": point.beta + jnp.maximum(loss - point.beta, 0.0) / self.alpha,
        }

    def local(self, model: Functional, down: State, clients: Tree, batches: Batches, keys: jax.Array) -> Any:
        up, clients, seen = super().local(model, down, clients, batches, keys)
        steps = jnp.maximum(batches.steps, 1)
        return Report(up, seen["above_target"] / steps, seen["tail_loss"] / steps), clients, seen

    def aggregate(self, server: State, up: Report, cohort: Cohort) -> State:
        pair, above, tail = weighted_mean(cohort.weights, up)
        share = server.alpha + self.memory * (above - server.alpha)
        gamma = jnp.clip(server.gamma + self.gamma_step * (tail - self.target), 0.0, 1.0)
        return State(pair, server.cap, jnp.maximum(self.alpha, share), gamma)

    def diagnostics(self, server: State) -> dict[str, jax.Array]:
        return {"beta": server.pair.beta, "alpha": server.alpha, "gamma": server.gamma}

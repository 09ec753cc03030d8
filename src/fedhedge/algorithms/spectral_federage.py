"""FedeRage for a spectral risk measure: several tails at once, one beta for each."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import traced
from fedhedge.algorithms.tail import Pair, State, TailWeighted

ROUNDING = 1e-9


@traced
@dataclasses.dataclass(frozen=True)
class SpectralFedeRage(TailWeighted):
    """FedeRage for (1 - sum_k gamma_k) E f + sum_k gamma_k CVaR_{alpha_k}(f), K tails at once.

    One local step, with f the mini-batch loss before the step, and beta of K entries:
        w = (1 - sum gamma_k) + sum_k (gamma_k/alpha_k) 1{f >= beta_k}
        theta <- Proj_C(theta - eta w grad f)
        beta_k <- Proj_B(beta_k - eta_beta gamma_k (1 - 1{f >= beta_k}/alpha_k))
    Every mixture of CVaRs is a spectral risk measure, and with K large every such measure is reached (Acerbi 2002; the
    variational form of CVaR is Rockafellar and Uryasev's, jointly convex in (theta, beta_1, ..., beta_K)). One tail is
    FedeRage. alphas, gammas: K numbers each, alpha_k in (0, 1], gamma_k >= 0 with sum at most 1. The rest as in
    FedeRage, with kappa = 1 + sum gamma_k (1/alpha_k - 1). Uplink: K scalars more than FedAvg.
    Raises InvalidInput for values outside these sets. Source: arXiv 2609.21057, open directions; eq. (13) for K = 1.
    """

    name: ClassVar[str] = "SpectralFedeRage"
    alphas: tuple[float, ...] = (0.05, 0.3)
    gammas: tuple[float, ...] = (0.4, 0.4)

    def __post_init__(self) -> None:
        alphas = checks.numbers_of("alphas", self.alphas, above=0.0, high=1.0)
        gammas = checks.numbers_of("gammas", self.gammas, low=0.0, high=1.0)
        if not alphas or len(gammas) != len(alphas):
            raise checks.InvalidInput("gammas", gammas, f"as many numbers as alphas, at least one: {len(alphas)}")
        if sum(gammas) > 1.0 + ROUNDING:
            raise checks.InvalidInput("gammas", gammas, "numbers whose sum is at most 1")
        object.__setattr__(self, "alphas", alphas)
        object.__setattr__(self, "gammas", gammas)
        super().__post_init__()

    @property
    def kappa(self) -> float:
        """kappa = 1 + sum gamma_k (1/alpha_k - 1), the largest weight of a local step."""
        return 1.0 + sum(g * (1.0 / a - 1.0) for a, g in zip(self.alphas, self.gammas, strict=True))

    @property
    def tails(self) -> tuple[int, ...]:
        return (len(self.alphas),)

    @property
    def levels(self) -> tuple[tuple[float, float], ...]:
        return tuple(zip(self.alphas, self.gammas, strict=True))

    def excess(self, loss: jax.Array, beta: jax.Array, down: Any) -> jax.Array:
        return jnp.stack(self.gammas) * ((loss >= beta) / jnp.stack(self.alphas) - 1.0)

    def observe(self, loss: jax.Array, point: Pair) -> dict[str, jax.Array]:
        rates = {f"tail_rate_{k + 1}": (loss >= point.beta[k]).astype(loss.dtype) for k in range(len(self.alphas))}
        return {"local_loss": loss} | rates

    def diagnostics(self, server: State) -> dict[str, jax.Array]:
        return {f"beta_{k + 1}": server.pair.beta[k] for k in range(len(self.alphas))}

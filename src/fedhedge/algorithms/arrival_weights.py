"""Weights from counts of who came so far."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import Cohort, Start, traced
from fedhedge.algorithms.weighting import Reweighting


class Arrivals(NamedTuple):
    """How often each client's upload was used, [N], and in how many rounds that were not empty."""

    counts: jax.Array
    rounds: jax.Array


@traced
@dataclasses.dataclass(frozen=True)
class ArrivalWeights(Reweighting):
    """Horvitz-Thompson with estimated probabilities: x <- x + sum over S of (p_i/q_i) (y_i - x), the law unknown.

    q_i = (c_i + s m/N) / (t + s) for c_i uploads of client i in the t rounds up to this one, m of all clients in a
    round on average: s pseudo-rounds of uniform availability, forgotten as t grows. p_i: the run's weights over all
    clients. N integers at the server, nothing else. A client that seldom comes takes a long step when it does: noisy
    for networks and very rare clients. `cap` limits p_i/q_i; the fixed point then lies between those without and with
    the correction.
    base: the method of the local work. smoothing: s >= 0. cap: largest weight of one upload; None: no limit.
    Raises InvalidInput for values outside these sets or a base whose weights are its own.
    Source: our estimate in the sum of Horvitz and Thompson 1952.
    """

    name: ClassVar[str] = "ArrivalWeights"
    keeps_sum: ClassVar[bool] = True
    smoothing: float = 1.0
    cap: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("smoothing", self.smoothing, low=0.0)
        if self.cap is not None:
            checks.number("cap", self.cap, above=0.0)

    def init_own(self, start: Start) -> Arrivals:
        return Arrivals(jnp.zeros(start.clients), jnp.zeros(()))

    def observed(self, own: Arrivals, cohort: Cohort) -> Arrivals:
        used = (cohort.weights > 0).astype(own.counts.dtype)
        return Arrivals(own.counts.at[cohort.clients].add(used, mode="drop"), own.rounds + 1.0)

    def arrived(self, own: Arrivals, cohort: Cohort) -> jax.Array:
        usual = jnp.mean(own.counts) / own.rounds
        frequency = (own.counts[cohort.clients] + self.smoothing * usual) / (own.rounds + self.smoothing)
        weights: jax.Array = cohort.mass / frequency
        return weights if self.cap is None else jnp.minimum(weights, self.cap)

"""DP-Fed SGD: averaged noisy subgradients."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import Cohort, Start, Tree, traced, weighted_mean
from fedhedge.algorithms.private import Noise, Private, Table
from fedhedge.dro import risk_subgradient


class State(NamedTuple):
    """Server state: the model M [K, P], and the number of steps taken."""

    model: jax.Array
    steps: jax.Array


@traced
@dataclasses.dataclass(frozen=True, kw_only=True)
class DpSgd(Private):
    """Private subgradient descent on the mean Crammer-Singer loss: each client sends one noisy subgradient a round.

    G_g = (1/N_g) sum_i d l(M; x_i, y_i) + N(0, sigma_g^2),  sigma_g = noise * 2 sqrt(2) L / N_g;
    M <- M - (eta_0 / sqrt(k)) sum_g w_g G_g, in the k-th step, w the aggregation weights of the clients at work.
    Like FedAvg it minimises the mean under the weights that availability really gives.
    step: eta_0. While all hinges are active the iterate is linear in it: from M = 0, `argmax` is the same predictor
    for all small ones. 2 to 4 is what rows of norm 1 need.
    noise, row_bound, neighbouring tables: see `Private`. Source: the second paper's DP-Fed SGD baseline.
    """

    name: ClassVar[str] = "DpSgd"
    step: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("step", self.step, above=0.0)

    def init_server(self, start: Start) -> State:
        return State(super().init_server(start), jnp.asarray(0.0))

    def iterate(self, server: State) -> jax.Array:
        return server.model

    def broadcast(self, server: State) -> jax.Array:
        return server.model

    def shapes(self, down: jax.Array) -> tuple[tuple[int, ...], ...]:
        return (down.shape,)

    def deviations(self, down: jax.Array, client: Tree, rows: jax.Array) -> Noise:
        return (self.gradient_deviation(rows),)

    def turn(self, down: jax.Array, client: Tree, table: Table, noise: Noise) -> tuple[jax.Array, Tree]:
        gradient, _ = risk_subgradient(down, 0.0, table.features, table.labels, math.inf, table.weights, jnp)
        return gradient + noise[0], client

    def aggregate(self, server: State, up: jax.Array, cohort: Cohort) -> State:
        steps = server.steps + 1.0
        return State(server.model - self.step / jnp.sqrt(steps) * weighted_mean(cohort.weights, up), steps)

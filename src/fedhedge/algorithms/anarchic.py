"""Anarchic federated averaging: workers come when they like, with as many local steps as they like."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import Cohort, Start, Tree, traced, weighted_mean
from fedhedge.algorithms.first_order import over_rates
from fedhedge.algorithms.latest_updates import LatestUpdates, State


@traced
@dataclasses.dataclass(frozen=True)
class Anarchic(LatestUpdates):
    """Workers send the mean gradient of their local steps, however many; the server steps with a rate of its own.

    G_i = (x' - y_i)/(K_i eta), the mean of K_i gradients from the model x' that the worker fetched.
    server="cd" (AFA-CD): x <- x - eta_g eta mean_S G_i. server="cs" (AFA-CS): the server keeps the latest G_i of
    everyone, 0 at first, and x <- x - eta_g eta mean_i G_i over all N clients. With eta_g = K_i = K, "cd" is FedAvg up
    to rounding.
    stale: a worker starts from the model that it fetched at the end of its last visit (x_0 at first), so that its
    upload is as old as its absence was long; otherwise from the present one.
    Fixed points: sum_i q_i (r_i/K_i)(x - b_i) = 0 on quadratics (r_i: contraction of K_i steps) with q = availability's
    weights for "cd" and 1/N for "cs": as FedNova, free of how many steps each one takes.
    step: eta > 0. server_step: eta_g > 0. ball: as in FedAvg. Client state: d scalars if stale, else none. Server
    state: d ("cd") or (N + 2) d. Raises InvalidInput when a step is not allowed.
    Source: Yang et al. 2022 (arXiv 2108.09875), AFA-CD and AFA-CS; eta_g eta is the product of its two-sided rates.
    """

    name: ClassVar[str] = "Anarchic"
    server: str = "cd"
    stale: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("step", self.step, above=0.0)
        checks.one_of("server", self.server, ("cd", "cs"))
        checks.boolean("stale", self.stale)

    def init_server(self, start: Start) -> State:
        return State(start.params, (), ()) if self.server == "cd" else super().init_server(start)

    def init_clients(self, clients: int, server: State) -> Tree:
        if not self.stale:
            return ()
        return jax.tree.map(lambda leaf: jnp.repeat(leaf[None], clients, axis=0), server.model)

    def origin(self, down: Tree, client: Tree) -> Tree:
        return client if self.stale else down

    def finish(self, point: Tree, down: Tree, client: Tree, steps: jax.Array) -> tuple[Tree, Tree]:
        change = jax.tree.map(jnp.subtract, point, self.origin(down, client))
        return over_rates(change, 1.0, steps), down if self.stale else ()

    def aggregate(self, server: State, up: Any, cohort: Cohort) -> State:
        if self.server == "cd":
            return self.moved(server, weighted_mean(cohort.weights, up))
        server = self.remember(server, up, self.news(server, up, cohort), cohort)
        return self.moved(server, server.mean)

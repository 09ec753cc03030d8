"""What methods share whose server remembers the latest update of every client."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import Cohort, Start, Tree, weighted_mean
from fedhedge.algorithms.fedavg import FedAvg


class State(NamedTuple):
    """Server state: the model, the latest update of each client [N, ...], and their mean by the clients' mass."""

    model: Tree
    table: Tree
    mean: Tree


@dataclasses.dataclass(frozen=True)
class LatestUpdates(FedAvg):
    """FedAvg's local work, with uploads y_i - x that the server keeps: u_i, 0 before client i's first visit.

    A round costs O(|S| d), whatever N: the mean of all u_i moves by what the participants' u_i moved.
    """

    server_step: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("server_step", self.server_step, above=0.0)

    def init_server(self, start: Start) -> State:
        table = jax.tree.map(lambda leaf: jnp.zeros((start.clients, *leaf.shape), leaf.dtype), start.params)
        return State(start.params, table, jax.tree.map(jnp.zeros_like, start.params))

    def iterate(self, server: State) -> Tree:
        return server.model

    def broadcast(self, server: State) -> Tree:
        return server.model

    def finish(self, point: Tree, down: Tree, client: Tree, steps: jax.Array) -> tuple[Tree, Tree]:
        return jax.tree.map(jnp.subtract, point, down), client

    def news(self, server: State, up: Tree, cohort: Cohort) -> Tree:
        """What participants' updates differ from those remembered, [S, ...]."""
        clients = jnp.minimum(cohort.clients, jax.tree.leaves(server.table)[0].shape[0] - 1)
        return jax.tree.map(lambda new, old: new - old[clients], up, server.table)

    def remember(self, server: State, up: Tree, news: Tree, cohort: Cohort) -> State:
        """The server state with the uploads that are used in the table, and the mean that goes with it."""
        used = cohort.weights > 0
        moved = weighted_mean(jnp.where(used, cohort.mass, 0.0), news)
        mean = jax.tree.map(jnp.add, server.mean, moved)
        target = jnp.where(used, cohort.clients, jax.tree.leaves(server.table)[0].shape[0])
        table = jax.tree.map(lambda old, new: old.at[target].set(new, mode="drop"), server.table, up)
        return State(server.model, table, mean)

    def moved(self, server: State, direction: Tree) -> State:
        """The server state after a step of `server_step` along a direction."""
        model = jax.tree.map(lambda x, d: x + self.server_step * d, server.model, direction)
        return server._replace(model=model)

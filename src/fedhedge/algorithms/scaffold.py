"""SCAFFOLD: federated averaging with control variates."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import Cohort, Start, Tree, traced, weighted_mean
from fedhedge.algorithms.first_order import FirstOrder


class Controlled(NamedTuple):
    """A model and a control variate, or a change of both."""

    model: Tree
    control: Tree


class State(NamedTuple):
    """Server state: the model x, the control c, and the number of clients N that the step of c needs."""

    model: Tree
    control: Tree
    population: jax.Array


@traced
@dataclasses.dataclass(frozen=True)
class Scaffold(FirstOrder):
    """FedAvg whose local gradients are corrected by the difference of server and client control variates.

    y <- y - eta (g_i(y) - c_i + c);  c_i+ = c_i - c + (x - y)/(H eta)  (option II);
    x <- x + eta_g mean(y_i - x);  c <- c + (|S|/N) mean(c_i+ - c_i). All controls start at 0, so that c is always
    the mean of all c_i. Its fixed point is the unweighted optimum, whatever the availability.
    step: eta > 0. server_step: eta_g. ball: as in FedAvg. Client state: c_i, final once its upload was used.
    Raises InvalidInput when a step is not positive. Source: Karimireddy et al. 2020 (arXiv 1910.06378), Algorithm 1.
    """

    name: ClassVar[str] = "Scaffold"
    server_step: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("step", self.step, above=0.0)
        checks.number("server_step", self.server_step, above=0.0)

    def init_server(self, start: Start) -> State:
        control = jax.tree.map(jnp.zeros_like, start.params)
        return State(start.params, control, jnp.asarray(float(start.clients)))

    def init_clients(self, clients: int, server: State) -> Tree:
        return jax.tree.map(lambda leaf: jnp.zeros((clients, *leaf.shape), leaf.dtype), server.control)

    def iterate(self, server: State) -> Tree:
        return server.model

    def broadcast(self, server: State) -> Controlled:
        return Controlled(server.model, server.control)

    def start(self, down: Controlled) -> Tree:
        return down.model

    def direction(self, loss: jax.Array, gradient: Tree, point: Tree, down: Controlled, client: Tree) -> Tree:
        return jax.tree.map(lambda g, own, common: g - own + common, gradient, client, down.control)

    def finish(self, point: Tree, down: Controlled, client: Tree, steps: jax.Array) -> tuple[Controlled, Tree]:
        scale = 1.0 / (steps * self.step)
        fresh = jax.tree.map(
            lambda own, common, x, y: own - common + scale * (x - y), client, down.control, down.model, point
        )
        change = Controlled(jax.tree.map(jnp.subtract, point, down.model), jax.tree.map(jnp.subtract, fresh, client))
        return change, fresh

    def aggregate(self, server: State, up: Controlled, cohort: Cohort) -> State:
        moved = weighted_mean(cohort.weights, up.model)
        model = jax.tree.map(lambda x, d: x + self.server_step * d, server.model, moved)
        # Every participant counts alike here, whatever the weights: only then is c the mean of all c_i.
        share = (cohort.weights > 0) / server.population
        control = jax.tree.map(jnp.add, server.control, weighted_mean(share, up.control))
        return State(model, control, server.population)

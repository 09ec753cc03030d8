"""What methods with control variates share: corrected directions, and controls that follow from one upload."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import Batches, Cohort, Start, Tree, weighted_mean
from fedhedge.algorithms.first_order import FirstOrder, Stepped, over_rates
from fedhedge.models.base import Functional


class Down(NamedTuple):
    """What the corrected method broadcasts, and the server's control c, shaped like its iterate."""

    base: Tree
    control: Tree


class State(NamedTuple):
    """Server state: that of the corrected method, the control c, and the number of clients N its step needs."""

    base: Tree
    control: Tree
    population: jax.Array


@dataclasses.dataclass(frozen=True)
class ControlVariates(FirstOrder):
    """Control variates over the method that comes next among the base classes.

    direction_i <- direction_i - c_i + c;  c_i+ = c_i - c + (x - y_i)/(H_i rate);  x <- x + eta_g sum_S w_i (y_i - x).
    A client sends y_i - x alone: c_i+ - c_i = (x - y_i)/(H_i rate) - c has nothing in it that the server lacks, so
        c <- c + (1/N) sum_S [(x - y_i)/(H_i rate) - c].
    With equal steps and weights that takes only the mean of the uploads; with unequal steps each client sends H_i too.
    Every participant counts alike in c, whatever the weights: only then is c the mean of all c_i.
    """

    server_step: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("step", self.step, above=0.0)
        checks.number("server_step", self.server_step, above=0.0)

    def init_server(self, start: Start) -> State:
        base = super().init_server(start)
        control = jax.tree.map(jnp.zeros_like, super().iterate(base))
        return State(base, control, jnp.asarray(float(start.clients)))

    def init_clients(self, clients: int, server: State) -> Tree:
        return jax.tree.map(lambda leaf: jnp.zeros((clients, *leaf.shape), leaf.dtype), server.control)

    def iterate(self, server: State) -> Tree:
        return super().iterate(server.base)

    def diagnostics(self, server: State) -> dict[str, jax.Array]:
        return super().diagnostics(server.base)

    def broadcast(self, server: State) -> Down:
        return Down(super().broadcast(server.base), server.control)

    def start(self, down: Down) -> Tree:
        return super().start(down.base)

    def project(self, point: Tree, down: Down) -> Tree:
        return super().project(point, down.base)

    def direction(self, loss: jax.Array, gradient: Tree, point: Tree, down: Down, client: Tree) -> Tree:
        plain = super().direction(loss, gradient, point, down.base, ())  # type: ignore[safe-super]
        return jax.tree.map(lambda d, own, common: d - own + common, plain, client, down.control)

    def finish(self, point: Tree, down: Down, client: Tree, steps: jax.Array) -> tuple[Tree, Tree]:
        change = jax.tree.map(jnp.subtract, point, self.start(down))
        slope = over_rates(change, self.rates(), steps)
        return change, jax.tree.map(lambda own, common, s: own - common - s, client, down.control, slope)

    def local(self, model: Functional, down: Down, clients: Tree, batches: Batches, keys: jax.Array) -> Any:
        up, fresh, seen = super().local(model, down, clients, batches, keys)
        return Stepped.of(up, batches), fresh, seen

    def aggregate(self, server: State, up: Stepped, cohort: Cohort) -> State:
        moved = weighted_mean(cohort.weights, up.content)
        iterate = jax.tree.map(lambda x, d: x + self.server_step * d, self.iterate(server), moved)
        share = (cohort.weights > 0) / server.population
        slope = over_rates(weighted_mean(share / up.steps, up.content), self.rates())
        control = jax.tree.map(lambda c, s: c - s - jnp.sum(share) * c, server.control, slope)
        return State(self.with_iterate(server.base, iterate), control, server.population)

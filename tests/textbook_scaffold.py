"""SCAFFOLD as published, with a model and a control in each upload, in double precision."""

import dataclasses
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from fedhedge.algorithms import FirstOrder, Scaffold, traced
from fedhedge.algorithms.base import weighted_mean


class Both(NamedTuple):
    model: object
    control: object


class State(NamedTuple):
    model: object
    control: object
    population: jax.Array


@traced
@dataclasses.dataclass(frozen=True)
class TextbookScaffold(FirstOrder):
    """Karimireddy et al. 2020, Algorithm 1, option II."""

    name: ClassVar[str] = "TextbookScaffold"
    precision: ClassVar[str] = "float64"
    server_step: float = 1.0

    def init_server(self, start):
        return State(start.params, jax.tree.map(jnp.zeros_like, start.params), jnp.asarray(float(start.clients)))

    def init_clients(self, clients, server):
        return jax.tree.map(lambda leaf: jnp.zeros((clients, *leaf.shape), leaf.dtype), server.control)

    def iterate(self, server):
        return server.model

    def broadcast(self, server):
        return Both(server.model, server.control)

    def start(self, down):
        return down.model

    def direction(self, loss, gradient, point, down, client):
        return jax.tree.map(lambda g, own, common: g - own + common, gradient, client, down.control)

    def finish(self, point, down, client, steps):
        fresh = jax.tree.map(
            lambda own, common, x, y: own - common + (x - y) / (steps * self.step),
            client, down.control, down.model, point,
        )  # fmt: skip
        return Both(jax.tree.map(jnp.subtract, point, down.model), jax.tree.map(jnp.subtract, fresh, client)), fresh

    def aggregate(self, server, up, cohort):
        moved = weighted_mean(cohort.weights, up.model)
        model = jax.tree.map(lambda x, d: x + self.server_step * d, server.model, moved)
        change = weighted_mean((cohort.weights > 0) / server.population, up.control)
        return State(model, jax.tree.map(jnp.add, server.control, change), server.population)


@traced
@dataclasses.dataclass(frozen=True)
class ExactScaffold(Scaffold):
    """The package's form in double precision."""

    name: ClassVar[str] = "ExactScaffold"
    precision: ClassVar[str] = "float64"

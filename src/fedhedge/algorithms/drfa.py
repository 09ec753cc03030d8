"""DRFA: distributionally robust federated averaging."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import Batches, Cohort, Start, Tree, traced, weighted_mean
from fedhedge.algorithms.first_order import FirstOrder, project_ball
from fedhedge.algorithms.simplex import ascend
from fedhedge.algorithms.weighting import client_losses
from fedhedge.models.base import Functional


class State(NamedTuple):
    """Server state: the model x, the snapshot w', lambda [N], and the key of the round's snapshot step."""

    model: Tree
    snapshot: Tree
    weights: jax.Array
    key: jax.Array


class Down(NamedTuple):
    """The model, and the key by which all clients choose their snapshot step alike."""

    model: Tree
    key: jax.Array


class Path(NamedTuple):
    """A client on its way: the model, the snapshot taken so far, and the number of steps done."""

    model: Tree
    snapshot: Tree
    done: jax.Array


@traced
@dataclasses.dataclass(frozen=True)
class DRFA(FirstOrder):
    """min over w, max over lambda in the simplex, of sum lambda_i f_i(w), with H local steps between messages.

    m clients are drawn by lambda, with replacement, among the m who got through; a client drawn k times weighs k/m.
    They take H local steps, x <- sum of weights times y_i, and w' <- the same mean of the iterates after step t',
    uniform in {1, ..., H} and common to all. At the start of the next round those who get through report f_i(w'), and
    lambda <- Proj(lambda + dual_step (N/m) v), v_i = f_i(w') for these and 0 for others.
    The paper draws from all N clients and asks a second, uniform sample; both are those who got through here.
    step: eta. dual_step: the paper's tau gamma (local steps times gamma). ball: as in FedAvg.
    Raises InvalidInput for a negative step. Source: Deng, Kamani and Mahdavi 2020 (arXiv 2102.12660), Algorithm 1.
    """

    name: ClassVar[str] = "DRFA"
    dual_step: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("dual_step", self.dual_step, low=0.0)

    def init_server(self, start: Start) -> State:
        return State(start.params, start.params, jnp.asarray(start.mass), jax.random.key_data(jax.random.key(0)))

    def inquire(self, server: State) -> Tree:
        return server.snapshot

    def probe(self, model: Functional, down: Tree, clients: Tree, batches: Batches, keys: jax.Array) -> jax.Array:
        return client_losses(model, down, batches)

    def weigh(self, server: State, seen: jax.Array, cohort: Cohort, key: jax.Array) -> tuple[State, jax.Array]:
        here = cohort.weights > 0
        dual = ascend(server.weights, cohort.clients, here, seen, self.dual_step)
        draw, snapshot = jax.random.split(key)
        own = jnp.where(here, dual[cohort.clients], 0.0)
        drawn = jax.random.categorical(draw, jnp.log(own), shape=own.shape)
        # As many draws as clients came; no draw where lambda is 0 for all of them.
        counted = (jnp.arange(len(own)) < jnp.sum(here)) & jnp.any(own > 0)
        times = jnp.zeros(own.shape).at[drawn].add(counted.astype(own.dtype))
        return State(server.model, server.snapshot, dual, jax.random.key_data(snapshot)), times / jnp.sum(here)

    def broadcast(self, server: State) -> Down:
        return Down(server.model, server.key)

    def start(self, down: Down) -> Path:
        return Path(down.model, down.model, jnp.zeros(()))

    def rates(self) -> Path:
        return Path(self.step, 0.0, 1.0)  # type: ignore[arg-type]

    def direction(self, loss: jax.Array, gradient: Tree, point: Path, down: Down, client: Tree) -> Path:
        return Path(gradient, jax.tree.map(jnp.zeros_like, point.snapshot), jnp.asarray(-1.0))

    def project(self, point: Path, down: Down) -> Path:
        model = project_ball(point.model, self.ball)
        # The j-th iterate replaces the snapshot with probability 1/j: uniform over steps, however many there are.
        luck = jax.random.uniform(jax.random.fold_in(jax.random.wrap_key_data(down.key), point.done.astype(jnp.int32)))
        taken = luck * point.done < 1.0
        return Path(model, jax.tree.map(lambda new, old: jnp.where(taken, new, old), model, point.snapshot), point.done)

    def finish(self, point: Path, down: Down, client: Tree, steps: jax.Array) -> tuple[tuple[Tree, Tree], Tree]:
        return (point.model, point.snapshot), client

    def aggregate(self, server: State, up: tuple[Tree, Tree], cohort: Cohort) -> State:
        model, snapshot = weighted_mean(cohort.weights, up)
        return State(model, snapshot, server.weights, server.key)

    def iterate(self, server: State) -> Tree:
        return server.model

    def parameters(self, iterate: Tree) -> Tree:
        return iterate.model if isinstance(iterate, Path) else iterate

    def diagnostics(self, server: State) -> dict[str, jax.Array]:
        return {"largest_lambda": jnp.max(server.weights)}

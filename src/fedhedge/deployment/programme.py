"""What coordinator and sites compute alike from the agreed settings: the model, the streams, the shapes of messages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fedhedge import checks, streams
from fedhedge.algorithms.base import Algorithm, Layout, Start, Tree
from fedhedge.models import Functional, Model
from fedhedge.simulation.arithmetic import arithmetic
from fedhedge.simulation.batches import Pool
from fedhedge.simulation.driver import strong
from fedhedge.simulation.options import Options
from fedhedge.simulation.rounds import Inputs, Keys, Messages, Plan, cohort_of_one, compiled_cohort_of_one
from fedhedge.streams import Purpose

# Rows made up to find the shapes of messages with.
STAND_IN_ROWS = 4


@dataclass(frozen=True)
class Likes:
    """Trees of the shapes and types of everything that travels or is kept.

    server: its state. client: one client's state, [1, ...]. inquiry, report, down, up: the messages of a round, reports
    and uploads with a leading axis of one slot. seen: names of what local steps observe. messages: as costs count them.
    """

    server: Tree
    client: Tree
    inquiry: Tree
    report: Tree
    down: Tree
    up: Tree
    seen: tuple[str, ...]
    messages: Messages


class Programme:
    """A method over N sites that all know its settings, but nobody else's rows.

    shape: of a row. classes: number of classes, 0 for a regression.
    """

    def __init__(
        self, algorithm: Algorithm, model: Model, options: Options, clients: int, shape: tuple[int, ...], classes: int
    ) -> None:
        self.algorithm, self.options, self.clients = algorithm, options, clients
        self.shape, self.classes = shape, classes
        self.model: Functional = model.build(shape, classes)
        self.steps = options.steps(clients)
        self.keys = Keys(*(streams.key(options.seed, use) for use in (Purpose.BATCHES, Purpose.NOISE, Purpose.SERVER)))

    @cached_property
    def params(self) -> Tree:
        """The initial model, which the seed decides."""
        with arithmetic(self.algorithm.precision):
            return jax.jit(self.model.init)(streams.key(self.options.seed, Purpose.INIT))

    def start(self, mass: np.ndarray, loss: Any) -> Start:
        """What the method starts from; loss: a function of no argument."""
        return Start(self.params, self.clients, mass / mass.sum(), loss)

    def stand_in(self) -> Start:
        """A start as far as a site knows it: equal weights, and a loss of 1."""
        return self.start(np.ones(self.clients), lambda: 1.0)

    def plan(self, rows: int) -> Plan:
        """What is fixed in a site with so many training rows."""
        batch = self.options.batch_size
        return Plan(
            model=self.model,
            steps=int(self.steps.max()),
            batch_size=batch,
            widest=rows,
            ragged=batch is not None and rows < batch,
            uniform_steps=bool((self.steps == self.steps[0]).all()),
            may_be_empty=True,
            skip_nonfinite=True,
            keep_unheard=False,
            layout=Layout(),
        )

    def pool(self, features: np.ndarray, labels: np.ndarray) -> Pool:
        """One site's rows, under whatever number the site has."""
        return Pool(
            jnp.asarray(features, self.algorithm.precision),
            jnp.asarray(labels),
            jnp.zeros(self.clients, jnp.int32),
            jnp.full(self.clients, len(labels), jnp.int32),
        )

    def initial_states(self, server: Tree) -> Tree:
        """States of all clients before the first round, [N, ...], which no client's rows enter."""
        return strong(self.algorithm.init_clients(self.clients, server))

    @cached_property
    def likes(self) -> Likes:
        """The shapes; made with rows that are made up."""
        algorithm = self.algorithm
        with arithmetic(algorithm.precision):
            server = strong(algorithm.init_server(self.stand_in()))
            states = self.initial_states(server)
            rows = np.random.default_rng(0).normal(size=(STAND_IN_ROWS, *self.shape))
            labels = np.arange(STAND_IN_ROWS) % max(1, self.classes)
            pool = self.pool(rows, labels.astype(np.int32 if self.classes else np.float64))
            inputs = Inputs(algorithm, pool, self.keys)
            find = compiled_cohort_of_one.eval_shape if algorithm.traceable else cohort_of_one
            found: Messages = find(self.plan(STAND_IN_ROWS), inputs, server, states)
            slot = jax.eval_shape(partial(jax.tree.map, lambda leaf: leaf[None]), (found.report, found.up))
            one = jax.tree.map(lambda leaf: leaf[:1], states)
            down, names = algorithm.broadcast(server), tuple(sorted(found.seen))
            return Likes(server, one, found.inquiry, slot[0], down, slot[1], names, found)

    def check(self, server: Tree, states: Tree) -> None:
        """Raises InvalidInput when clients start from something that a site cannot know."""
        alone = self.initial_states(strong(self.algorithm.init_server(self.stand_in())))
        same = jax.tree.map(lambda a, b: bool(jnp.array_equal(a, b)), states, alone)
        if not all(jax.tree.leaves(same)):
            allowed = "a method whose clients start from the initial model alone"
            raise checks.InvalidInput("algorithm", self.algorithm.name, allowed)

"""What does not fit in memory: of rows and client states on disk, a chunk of rounds holds those that it needs."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from fedhedge.algorithms.base import Algorithm, Tree
from fedhedge.simulation.batches import Pool
from fedhedge.simulation.rounds import Inputs, Plan, Schedule, State, compiled_rows

if TYPE_CHECKING:
    from fedhedge.data import Clients

# Bytes of rows, and of client states, that one chunk of rounds may bring into memory.
BUDGET = 128 * 2**20


class Rows:
    """Training rows of clients whose features are a memory-mapped file."""

    def __init__(self, clients: Clients, precision: str) -> None:
        self.features, self.labels = clients.rows("train")
        self.offsets, self.counts = clients.offsets("train")[:-1], clients.counts("train")
        self.precision = precision

    def bytes_of(self, rows: int) -> int:
        """Bytes that so many rows take."""
        return rows * self.features[:1].size * np.dtype(self.precision).itemsize

    def slices(self, who: np.ndarray) -> Pool:
        """A pool that holds all rows of some clients, and where they are in it; other clients' offsets mean nothing."""
        counts = self.counts[who]
        ends = np.cumsum(counts)
        offsets = np.zeros(len(self.counts), np.int32)
        offsets[who] = ends - counts
        return self._pool(np.repeat(self.offsets[who] - (ends - counts), counts) + np.arange(counts.sum()), offsets)

    def batches(self, plan: Plan, inputs: Inputs, schedule: Schedule, length: int) -> tuple[Pool, Tree]:
        """A pool that holds the mini-batches of the first `length` rounds of a schedule, and their rows in it."""
        pool = Pool(*inputs.pool[:2], jnp.asarray(self.offsets, jnp.int32), inputs.pool.counts)
        drawn, present = compiled_rows(plan, inputs._replace(pool=pool), schedule)
        rows, place = np.unique(np.asarray(drawn)[:length], return_inverse=True)
        index = np.zeros(drawn.shape, np.int32)
        index[:length] = place.reshape(index[:length].shape)
        return self._pool(rows, np.zeros(len(self.counts), np.int32)), (jnp.asarray(index), present)

    def _pool(self, rows: np.ndarray, offsets: np.ndarray) -> Pool:
        padded = np.concatenate([rows, np.zeros(_power(len(rows)) - len(rows), rows.dtype)])
        features = jnp.asarray(np.asarray(self.features[padded]), self.precision)
        return Pool(
            features, jnp.asarray(self.labels[padded]), jnp.asarray(offsets), jnp.asarray(self.counts, jnp.int32)
        )


class States:
    """States of all clients in files of a folder of its own, which goes when the object goes."""

    def __init__(self, folder: Path, algorithm: Algorithm, server: Tree, clients: int) -> None:
        self.first, self.clients = jax.jit(lambda who: _rows(algorithm.init_clients(clients, server), who)), clients
        shapes = jax.eval_shape(self.first, jnp.zeros(clients, jnp.int32))
        folder.mkdir(parents=True, exist_ok=True)
        own = tempfile.mkdtemp(prefix="states-", dir=folder)
        weakref.finalize(self, shutil.rmtree, own, ignore_errors=True)
        leaves, self.structure = jax.tree.flatten(shapes)
        self.leaves = [
            np.lib.format.open_memmap(f"{own}/{k}.npy", mode="w+", dtype=leaf.dtype, shape=leaf.shape)
            for k, leaf in enumerate(leaves)
        ]
        # A state that was never written is the first one: the files need not be filled.
        self.written = np.zeros(clients, np.bool_)

    @property
    def bytes_of_one(self) -> int:
        """Bytes of one client's state."""
        return sum(leaf[:1].nbytes for leaf in self.leaves)

    def read(self, who: np.ndarray) -> tuple[Tree, Tree]:
        """(states, first states) of some clients, [U, ...], and of any others after them."""
        padded = np.concatenate([who, np.zeros(min(self.clients, _power(len(who))) - len(who), who.dtype)])
        first = self.first(jnp.asarray(padded, jnp.int32))
        written = self.written[padded]
        states = [np.array(leaf) for leaf in jax.tree.leaves(first)]
        for own, leaf in zip(states, self.leaves, strict=True):
            own[written] = leaf[padded[written]]
        return jax.tree.unflatten(self.structure, [jnp.asarray(own) for own in states]), first

    def write(self, who: np.ndarray, states: Tree) -> None:
        """Take the states of the same clients back."""
        for own, leaf in zip(jax.tree.leaves(states), self.leaves, strict=True):
            leaf[who] = np.asarray(own)[: len(who)]
        self.written[who] = True


class Disk:
    """What of a run is on disk, brought in for a chunk of rounds and taken back after it; nothing, mostly.

    rows: of training, None: all are on the device. states: of clients, None: all are in the state of the run.
    """

    def __init__(self, rows: Rows | None, states: States | None) -> None:
        self.rows, self.states = rows, states

    def rounds_at_once(self, plan: Plan, slots: int, batched: bool) -> int:
        """Rounds whose rows and states keep to the budget, at least one. batched: see `load`."""
        needed = 0
        if self.rows is not None:
            rows = plan.steps * plan.batch_size if batched and plan.batch_size is not None else plan.widest
            needed = self.rows.bytes_of(slots * rows)
        if self.states is not None:
            needed = max(needed, slots * self.states.bytes_of_one)
        return max(1, BUDGET // needed) if needed else BUDGET

    def load(
        self, plan: Plan, inputs: Inputs, state: State, schedule: Schedule, length: int, batched: bool
    ) -> tuple[Inputs, State, Schedule]:
        """The same with the rows and states that the first `length` rounds need.

        batched: bring in mini-batches alone, for a method that looks at no other rows; else all of its clients' rows.
        """
        if self.rows is None and self.states is None:
            return inputs, state, schedule
        self._who, place = places(schedule, length)
        if self.rows is not None:
            if batched:
                pool, index = self.rows.batches(plan, inputs, schedule, length)
                schedule = schedule._replace(index=index)
            else:
                pool = self.rows.slices(self._who)
            inputs = inputs._replace(pool=pool)
        if self.states is not None:
            own, first = self.states.read(self._who)
            state, schedule = state._replace(clients=own), schedule._replace(place=place)
            if schedule.forgets is not None:
                inputs = inputs._replace(initial=first)
        return inputs, state, schedule

    def keep(self, state: State) -> State:
        """Take the clients' states back, and hold none of them."""
        if self.states is None:
            return state
        self.states.write(self._who, state.clients)
        return state._replace(clients=())


def places(schedule: Schedule, length: int) -> tuple[np.ndarray, jax.Array]:
    """Clients of the first `length` rounds, ascending [U], and which of them is in each slot; a huge number: none."""
    clients, busy = np.asarray(schedule.clients), np.asarray(schedule.steps > 0).copy()
    busy[length:] = False
    who = np.unique(clients[busy])
    return who, jnp.asarray(np.where(busy, np.searchsorted(who, clients), np.iinfo(np.int32).max), jnp.int32)


def _rows(tree: Tree, who: Any) -> Tree:
    return jax.tree.map(lambda leaf: leaf[who], tree)


def _power(count: int) -> int:
    """The next power of two: few shapes, few compilations."""
    return 1 << max(0, count - 1).bit_length()

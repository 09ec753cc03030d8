"""The round itself, and two ways to run many of them: one compiled loop, or a host loop over compiled rounds."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from fedhedge.algorithms.base import Algorithm, Batches, Cohort, Layout, Tree
from fedhedge.models.base import Functional
from fedhedge.simulation.batches import Pool, draw


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is fixed when a programme is compiled.

    steps: the largest number of local steps. batch_size: rows of a mini-batch, None for all. widest: the largest
    row count of a client. ragged: some client has fewer rows than a mini-batch. may_be_empty: a round may have no
    upload. skip_nonfinite: leave out non-finite uploads instead of stopping.
    """

    model: Functional
    steps: int
    batch_size: int | None
    widest: int
    ragged: bool
    uniform_steps: bool
    may_be_empty: bool
    skip_nonfinite: bool
    layout: Layout


class Keys(NamedTuple):
    """Root keys of the streams that the rounds draw from."""

    batches: jax.Array
    noise: jax.Array


class Inputs(NamedTuple):
    """What rounds read and never change."""

    algorithm: Algorithm
    pool: Pool
    keys: Keys


class Schedule(NamedTuple):
    """Who works in which round. Shapes: clients, weights, mass, steps [R, S]; number [R].

    clients: ascending client numbers, then N for empty slots. weights: aggregation weights over the cohort, and
    mass: over all clients, both 0 for empty slots. steps: local steps, 0 for empty slots. number: the rounds'
    numbers, from 0.
    """

    clients: jax.Array
    weights: jax.Array
    mass: jax.Array
    steps: jax.Array
    number: jax.Array


class State(NamedTuple):
    """Everything a run is, between two rounds.

    average: mean of the server's iterates so far. done: rounds so far.
    """

    server: Tree
    clients: Tree
    average: Tree
    done: jax.Array


class Tally(NamedTuple):
    """What was seen since the last evaluation, and the first round whose aggregate was not finite.

    bad_client: the first client with a non-finite upload in `bad_round`; both are -1 when there is none.
    """

    sums: dict[str, jax.Array]
    steps: jax.Array
    skipped: jax.Array
    bad_round: jax.Array
    bad_client: jax.Array


def empty_tally(names: tuple[str, ...]) -> Tally:
    """A tally of nothing."""
    zero = jnp.zeros(())
    none = jnp.asarray(-1, jnp.int32)
    return Tally(dict.fromkeys(names, zero), zero, jnp.asarray(0, jnp.int32), none, none)


def one_round(
    plan: Plan, inputs: Inputs, state: State, tally: Tally, item: Schedule, index: Tree
) -> tuple[State, Tally]:
    """One round: broadcast, local work, aggregation; a client's state is final only if its upload was used."""
    work = inputs.algorithm.local(plan.model, *_arguments(plan, inputs, state, item, index))
    return _settle(plan, inputs, state, tally, item, work)


def _arguments(
    plan: Plan, inputs: Inputs, state: State, item: Schedule, index: Tree
) -> tuple[Tree, Tree, Batches, jax.Array]:
    """Arguments of `Algorithm.local`, after the model, for one round's cohort."""
    algorithm, pool, keys = inputs
    slots = jnp.minimum(item.clients, pool.counts.shape[0] - 1)
    rows, present = index
    batches = Batches(
        pool.features, pool.labels, rows, present if plan.ragged else None, item.steps, plan.uniform_steps, plan.layout
    )
    noise = jax.vmap(lambda client: jax.random.fold_in(jax.random.fold_in(keys.noise, client), item.number))(slots)
    cohort = jax.tree.map(lambda leaf: leaf[slots], state.clients)
    return algorithm.broadcast(state.server), cohort, batches, noise


def _settle(
    plan: Plan,
    inputs: Inputs,
    state: State,
    tally: Tally,
    item: Schedule,
    work: tuple[Tree, Tree, dict[str, jax.Array]],
) -> tuple[State, Tally]:
    """State and tally after a round, from what `Algorithm.local` returned."""
    algorithm, population = inputs.algorithm, inputs.pool.counts.shape[0]
    up, fresh, seen = work
    at_work = item.steps > 0
    weights, used = item.weights, at_work
    if plan.skip_nonfinite:
        bad = at_work & ~_finite(up)
        used = at_work & ~bad
        weights = jnp.where(used, weights, 0.0)
        total = jnp.sum(weights)
        weights = weights / jnp.where(total > 0.0, total, 1.0)
        up, seen = _only(used, up), _only(used, seen)
    server = algorithm.aggregate(state.server, up, Cohort(item.clients, weights, item.mass))
    if plan.may_be_empty or plan.skip_nonfinite:
        server = jax.tree.map(partial(jnp.where, jnp.any(used)), server, state.server)
    healthy = jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(server)]).all()
    if not plan.skip_nonfinite:
        # Looking at every upload costs a pass over all of them, so it waits until the aggregate is not finite.
        bad = jax.lax.cond(healthy, lambda: jnp.zeros_like(at_work), lambda: at_work & ~_finite(up))
    target = jnp.where(used, item.clients, population)
    clients = jax.tree.map(lambda leaf, new: leaf.at[target].set(new, mode="drop"), state.clients, fresh)
    done = state.done + 1
    share = 1.0 / done
    average = jax.tree.map(lambda mean, x: mean + share * (x - mean), state.average, algorithm.iterate(server))

    sums = {name: tally.sums[name] + jnp.sum(value) for name, value in seen.items()}
    first_failure = ~healthy & (tally.bad_round < 0)
    culprit = jnp.where(jnp.any(bad), item.clients[jnp.argmax(bad)], -1)
    tally = Tally(
        sums,
        tally.steps + jnp.sum(jnp.where(used, item.steps, 0)),
        tally.skipped + jnp.sum(bad, dtype=jnp.int32),
        jnp.where(first_failure, item.number, tally.bad_round),
        jnp.where(first_failure, culprit, tally.bad_client),
    )
    return State(server, clients, average, done), tally


def many_rounds(
    plan: Plan, inputs: Inputs, state: State, tally: Tally, schedule: Schedule, length: jax.Array, *, early: bool
) -> tuple[State, Tally]:
    """The first `length` rounds of a schedule; `early` lets them end at a failure or when the method is finished."""
    # Drawing is many small operations, cheap only for many rounds at once; all rows of a client need no draw.
    ahead = None if plan.batch_size is None else _rows(plan, inputs, schedule)

    def going(carry: tuple[jax.Array, State, Tally]) -> jax.Array:
        position, now, seen = carry
        if not early:
            return position < length
        return (position < length) & (seen.bad_round < 0) & jnp.logical_not(inputs.algorithm.finished(now.server))

    def step(carry: tuple[jax.Array, State, Tally]) -> tuple[jax.Array, State, Tally]:
        position, state, tally = carry
        item, rows = jax.tree.map(lambda leaf: leaf[position], (schedule, ahead))
        if rows is None:
            rows = _rows(plan, inputs, item)
        return position + 1, *one_round(plan, inputs, state, tally, item, rows)

    _, state, tally = jax.lax.while_loop(going, step, (jnp.asarray(0, jnp.int32), state, tally))
    return state, tally


compiled_rounds = jax.jit(partial(many_rounds, early=True), static_argnames=("plan",))


@partial(jax.jit, static_argnames=("plan", "shared"))
def batched_rounds(
    plan: Plan, shared: bool, inputs: Inputs, state: State, tally: Tally, schedule: Schedule, length: jax.Array
) -> tuple[State, Tally]:
    """The same rounds for many runs side by side: every argument has a leading run axis, the pool unless `shared`."""
    axes = (Inputs(0, None if shared else 0, 0), 0, 0, 0, None)  # type: ignore[arg-type]
    return jax.vmap(partial(many_rounds, plan, early=False), in_axes=axes)(inputs, state, tally, schedule, length)


def host_rounds(
    plan: Plan, inputs: Inputs, state: State, tally: Tally, schedule: Schedule, length: int
) -> tuple[State, Tally]:
    """The same rounds, one compiled programme each, called from a Python loop.

    For methods that call a solver, and for convolutions, which run slowly inside a compiled loop on a CPU.
    """
    single = _compiled_single if inputs.algorithm.traceable else _solver_single
    for position in range(length):
        item = jax.tree.map(lambda leaf, at=position: leaf[at], schedule)
        state, tally = single(plan, inputs, state, tally, item)
        if int(tally.bad_round) >= 0 or bool(inputs.algorithm.finished(state.server)):
            break
    return state, tally


def _single(plan: Plan, inputs: Inputs, state: State, tally: Tally, item: Schedule) -> tuple[State, Tally]:
    return one_round(plan, inputs, state, tally, item, _rows(plan, inputs, item))


_compiled_single = jax.jit(_single, static_argnames=("plan",))


def _solver_single(plan: Plan, inputs: Inputs, state: State, tally: Tally, item: Schedule) -> tuple[State, Tally]:
    """A round whose local work is plain Python, between two compiled programmes."""
    index = _compiled_rows(plan, inputs, item)
    work = inputs.algorithm.local(plan.model, *_compiled_arguments(plan, inputs, state, item, index))
    after: tuple[State, Tally] = _compiled_settle(plan, inputs, state, tally, item, work)
    return after


def _rows(plan: Plan, inputs: Inputs, item: Schedule) -> tuple[jax.Array, jax.Array | None]:
    """Mini-batches of the cohorts of one round or many: row numbers [..., S, H, b] and, where needed, which exist."""
    _, pool, keys = inputs
    shape = item.clients.shape
    numbers = jnp.broadcast_to(item.number[..., None], shape)
    clients = jnp.minimum(item.clients, pool.counts.shape[0] - 1)
    rows, present = draw(keys.batches, pool, clients.ravel(), numbers.ravel(), plan.steps, plan.batch_size, plan.widest)
    rows, present = (leaf.reshape(*shape, *leaf.shape[1:]) for leaf in (rows, present))
    return rows, present if plan.ragged else None


_compiled_rows, _compiled_arguments, _compiled_settle = (
    jax.jit(part, static_argnames=("plan",)) for part in (_rows, _arguments, _settle)
)


def cohort_of_one(plan: Plan, inputs: Inputs, server: Tree, clients: Tree) -> tuple[Tree, dict[str, jax.Array]]:
    """What client 0 alone would upload and observe in round 0, for the shapes: traced where that is possible."""
    algorithm, pool, keys = inputs
    slot = jnp.zeros(1, jnp.int32)
    item = Schedule(slot, jnp.ones(1), jnp.ones(1), jnp.full(1, plan.steps, jnp.int32), jnp.asarray(0, jnp.int32))
    rows, present = _rows(plan, inputs, item)
    batches = Batches(pool.features, pool.labels, rows, present, item.steps, plan.uniform_steps, plan.layout)
    state = jax.tree.map(lambda leaf: leaf[slot], clients)
    up, _, seen = algorithm.local(plan.model, algorithm.broadcast(server), state, batches, keys.noise[None])
    return jax.tree.map(lambda leaf: leaf[0], up), seen


def _finite(up: Tree) -> jax.Array:
    """bool[S]: whether every entry of a slot's upload is finite."""
    leaves = [jnp.isfinite(leaf).reshape(leaf.shape[0], -1).all(axis=1) for leaf in jax.tree.leaves(up)]
    return jnp.stack(leaves).all(axis=0)


def _only(used: jax.Array, tree: Tree) -> Tree:
    """Zero the slots that are not used: a weight of 0 alone would let a NaN through."""
    return jax.tree.map(lambda leaf: jnp.where(used.reshape((-1,) + (1,) * (leaf.ndim - 1)), leaf, 0), tree)

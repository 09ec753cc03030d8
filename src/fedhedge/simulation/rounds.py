"""The round itself, and two ways to run many of them: one compiled loop, or a host loop over compiled rounds."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from fedhedge.algorithms.base import Algorithm, Batches, Cohort, Layout, Tree
from fedhedge.models.base import Functional
from fedhedge.simulation.batches import Pool, draw
from fedhedge.simulation.tally import Tally, failure

# Apart from the numbers that local work may fold into a client's key.
PROBE = 2**32 - 1


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is fixed when a programme is compiled.

    steps: the largest number of local steps. batch_size: rows of a mini-batch, None for all. widest: the largest
    row count of a client. ragged: some client has fewer rows than a mini-batch. may_be_empty: a round may have no
    upload. skip_nonfinite: leave out non-finite uploads instead of stopping. keep_unheard: a client whose upload is
    lost does not learn of it, and keeps its new state.
    """

    model: Functional
    steps: int
    batch_size: int | None
    widest: int
    ragged: bool
    uniform_steps: bool
    may_be_empty: bool
    skip_nonfinite: bool
    keep_unheard: bool
    layout: Layout


class Keys(NamedTuple):
    """Root keys of the streams that the rounds draw from."""

    batches: jax.Array
    noise: jax.Array
    server: jax.Array


class Inputs(NamedTuple):
    """What rounds read and never change; initial: the clients' first states, where some may fall back to theirs."""

    algorithm: Algorithm
    pool: Pool
    keys: Keys
    initial: Tree = None


class Schedule(NamedTuple):
    """Who works in which round. Shapes: clients, weights, mass, steps, lost, forgets, place [R, S]; number [R].

    clients: ascending client numbers, then N for empty slots. weights: aggregation weights over the cohort, and
    mass: over all clients, both 0 for empty slots. steps: local steps, 0 for empty slots. number: the rounds'
    numbers, from 0. lost: whose upload is lost on its way; forgets: who comes without its state; None: nobody ever.
    place: where in `State.clients` a client's state is, None: at its number. index: mini-batches as `_rows` gives them,
    where they are drawn beforehand.
    """

    clients: jax.Array
    weights: jax.Array
    mass: jax.Array
    steps: jax.Array
    number: jax.Array
    lost: jax.Array | None = None
    forgets: jax.Array | None = None
    place: jax.Array | None = None
    index: Tree = None


class State(NamedTuple):
    """Everything a run is, between two rounds.

    clients: states of all clients, [N, ...], or of those that the rounds at hand need (`Schedule.place` says where).
    average: mean of the server's iterates so far. done: rounds so far.
    """

    server: Tree
    clients: Tree
    average: Tree
    done: jax.Array


def one_round(
    plan: Plan, inputs: Inputs, state: State, tally: Tally, item: Schedule, index: Tree
) -> tuple[State, Tally, jax.Array | None]:
    """One round: first phase where there is one, broadcast, local work, aggregation; and who trained, bool[S].

    A client's state is final only if its upload was used. Who trained is None where all who got through do.
    """
    state, tally, cohort, item = _open(plan, inputs, state, tally, item)
    work = inputs.algorithm.local(plan.model, *_arguments(plan, inputs, state, cohort, item, index))
    state, tally = _settle(plan, inputs, state, tally, item, work)
    return state, tally, item.steps > 0 if inputs.algorithm.weighs else None


def _open(
    plan: Plan, inputs: Inputs, state: State, tally: Tally, item: Schedule
) -> tuple[State, Tally, Tree, Schedule]:
    """What comes before training, lost states and the first phase: also the cohort's states, and who trains."""
    algorithm, population = inputs.algorithm, inputs.pool.counts.shape[0]
    place = item.clients if item.place is None else item.place
    if item.forgets is not None:
        gone = jnp.where(item.forgets, place, population)
        first = _at(place, inputs.initial)
        blank = jax.tree.map(lambda leaf, new: leaf.at[gone].set(new, mode="drop"), state.clients, first)
        state = state._replace(clients=blank)
    cohort = _at(place, state.clients)
    if not algorithm.weighs:
        return state, tally, cohort, item
    here, weights = item.steps > 0, item.weights
    seen: Tree = ()
    bad = jnp.zeros_like(here)
    if algorithm.probes:
        seen = algorithm.probe(plan.model, *_questions(plan, inputs, state.server, cohort, item))
        bad = here & ~_finite(seen)
        if plan.skip_nonfinite:
            here, seen = here & ~bad, _only(~bad, seen)
            weights = _renormalised(weights, here)
            tally = tally._replace(refused=tally.refused + jnp.sum(bad, dtype=jnp.int32))
            bad = jnp.zeros_like(bad)
        cohort = algorithm.prepare(cohort, seen)
    key = jax.random.fold_in(inputs.keys.server, item.number)
    server, weights = algorithm.weigh(state.server, seen, Cohort(item.clients, weights, item.mass), key)
    weights = jnp.where(here, weights, 0.0)
    # Only what the reports changed is gone through, such as dual variables: not whole models.
    pairs = zip(jax.tree.leaves(server), jax.tree.leaves(state.server), strict=True)
    made = [weights, *(new for new, old in pairs if new is not old)]
    spoilt = jnp.any(bad) | ~jnp.stack([jnp.isfinite(leaf).all() for leaf in made]).all()
    tally = failure(tally, jnp.any(here) & spoilt, item.number, item.clients, bad, report=True)
    state = state._replace(server=jax.tree.map(partial(jnp.where, jnp.any(here)), server, state.server))
    return state, tally, cohort, item._replace(weights=weights, steps=jnp.where(weights > 0.0, item.steps, 0))


def _questions(
    plan: Plan, inputs: Inputs, server: Tree, cohort: Tree, item: Schedule
) -> tuple[Tree, Tree, Batches, jax.Array]:
    """Arguments of `Algorithm.probe`, after the model, for all who got through."""
    _, pool, keys, _ = inputs
    slots = _slots(inputs, item)
    rows, present = draw(keys.batches, pool, slots, slots, 1, None, plan.widest)
    batches = Batches(pool.features, pool.labels, rows, present, item.steps, True, plan.layout)
    noise = jax.vmap(lambda key: jax.random.fold_in(key, PROBE))(_noise(inputs, item))
    return inputs.algorithm.inquire(server), cohort, batches, noise


def _arguments(
    plan: Plan, inputs: Inputs, state: State, cohort: Tree, item: Schedule, index: Tree
) -> tuple[Tree, Tree, Batches, jax.Array]:
    """Arguments of `Algorithm.local`, after the model, for one round's cohort."""
    pool = inputs.pool
    rows, present = index
    batches = Batches(
        pool.features, pool.labels, rows, present if plan.ragged else None, item.steps, plan.uniform_steps, plan.layout
    )
    return inputs.algorithm.broadcast(state.server), cohort, batches, _noise(inputs, item)


def _slots(inputs: Inputs, item: Schedule) -> jax.Array:
    """Client numbers of slots, with some client's number for an empty one."""
    return jnp.minimum(item.clients, inputs.pool.counts.shape[0] - 1)


def _at(place: jax.Array, states: Tree) -> Tree:
    """The states at these places, and some client's for an empty slot."""
    return jax.tree.map(lambda leaf: leaf[jnp.minimum(place, leaf.shape[0] - 1)], states)


def _noise(inputs: Inputs, item: Schedule) -> jax.Array:
    """One key for each slot, from the stream (client, round)."""

    def stream(client: jax.Array) -> jax.Array:
        return jax.random.fold_in(jax.random.fold_in(inputs.keys.noise, client), item.number)

    return jax.vmap(stream)(_slots(inputs, item))


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
    arrived = at_work if item.lost is None else at_work & ~item.lost
    weights, used = item.weights, arrived
    if plan.skip_nonfinite:
        bad = arrived & ~_finite(up)
        used = arrived & ~bad
    if plan.skip_nonfinite or item.lost is not None:
        weights = _renormalised(weights, used)
        up, seen = _only(used, up), _only(used, seen)
    server = algorithm.aggregate(state.server, up, Cohort(item.clients, weights, item.mass))
    if plan.may_be_empty or plan.skip_nonfinite:
        server = jax.tree.map(partial(jnp.where, jnp.any(used)), server, state.server)
    # Tables of all clients at the server are not gone through in every round: what is wrong there shows in the model.
    shown = (algorithm.iterate(server), algorithm.broadcast(server))
    # 0 * x is 0 unless x is not finite: half the time of isfinite().all(), which writes a mask first.
    healthy = jnp.stack([jnp.sum(leaf * 0) == 0 for leaf in jax.tree.leaves(shown)]).all()
    if not plan.skip_nonfinite:
        # Looking at every upload costs a pass over all of them, so it waits until the aggregate is not finite.
        bad = jax.lax.cond(healthy, lambda: jnp.zeros_like(at_work), lambda: arrived & ~_finite(up))
    # A client that does not hear of the loss goes on from its new state.
    final = used | (at_work & item.lost) if plan.keep_unheard and item.lost is not None else used
    target = jnp.where(final, item.clients if item.place is None else item.place, population)
    clients = jax.tree.map(lambda leaf, new: leaf.at[target].set(new, mode="drop"), state.clients, fresh)
    done = state.done + 1
    share = 1.0 / done
    average = jax.tree.map(lambda mean, x: mean + share * (x - mean), state.average, algorithm.iterate(server))

    sums = {name: tally.sums[name] + jnp.sum(value) for name, value in seen.items()}
    tally = tally._replace(
        sums=sums,
        steps=tally.steps + jnp.sum(jnp.where(used, item.steps, 0)),
        skipped=tally.skipped + jnp.sum(bad, dtype=jnp.int32),
    )
    tally = failure(tally, ~healthy, item.number, item.clients, bad, report=False)
    return State(server, clients, average, done), tally


def many_rounds(
    plan: Plan, inputs: Inputs, state: State, tally: Tally, schedule: Schedule, length: jax.Array, *, early: bool
) -> tuple[State, Tally, jax.Array | None]:
    """The first `length` rounds of a schedule; `early` lets them end at a failure or when the method is finished.

    Third result: who trained, bool[R, S], for a method that decides it (see `one_round`).
    """
    # Drawing is many small operations, cheap only for many rounds at once; all rows of a client need no draw.
    ahead = schedule.index
    if ahead is None and plan.batch_size is not None:
        ahead = _rows(plan, inputs, schedule)

    def going(carry: tuple[jax.Array, State, Tally, jax.Array | None]) -> jax.Array:
        position, now, seen, _ = carry
        if not early:
            return position < length
        return (position < length) & (seen.bad_round < 0) & jnp.logical_not(inputs.algorithm.finished(now.server))

    def step(
        carry: tuple[jax.Array, State, Tally, jax.Array | None],
    ) -> tuple[jax.Array, State, Tally, jax.Array | None]:
        position, state, tally, trained = carry
        item, rows = jax.tree.map(lambda leaf: leaf[position], (schedule, ahead))
        if rows is None:
            rows = _rows(plan, inputs, item)
        state, tally, who = one_round(plan, inputs, state, tally, item, rows)
        if trained is not None:
            trained = trained.at[position].set(who)
        return position + 1, state, tally, trained

    nobody = jnp.zeros(schedule.clients.shape, bool) if inputs.algorithm.weighs else None
    return jax.lax.while_loop(going, step, (jnp.asarray(0, jnp.int32), state, tally, nobody))[1:]


# The state given is used up: its memory becomes that of the new one, so that states of very many clients exist once.
compiled_rounds = jax.jit(partial(many_rounds, early=True), static_argnames=("plan",), donate_argnames=("state",))


def host_rounds(
    plan: Plan, inputs: Inputs, state: State, tally: Tally, schedule: Schedule, length: int
) -> tuple[State, Tally, jax.Array | None]:
    """The same rounds, one compiled programme each, called from a Python loop.

    For methods that call a solver, and for convolutions, which run slowly inside a compiled loop on a CPU.
    """
    single = _compiled_single if inputs.algorithm.traceable else _solver_single
    trained: list[Any] = []
    for position in range(length):
        item = jax.tree.map(lambda leaf, at=position: leaf[at], schedule)
        state, tally, who = single(plan, inputs, state, tally, item)
        trained.append(who)
        if int(tally.bad_round) >= 0 or bool(inputs.algorithm.finished(state.server)):
            break
    return state, tally, jnp.stack(trained) if inputs.algorithm.weighs else None


def _single(
    plan: Plan, inputs: Inputs, state: State, tally: Tally, item: Schedule
) -> tuple[State, Tally, jax.Array | None]:
    index = _rows(plan, inputs, item) if item.index is None else item.index
    return one_round(plan, inputs, state, tally, item, index)


_compiled_single = jax.jit(_single, static_argnames=("plan",), donate_argnames=("state",))


def _solver_single(
    plan: Plan, inputs: Inputs, state: State, tally: Tally, item: Schedule
) -> tuple[State, Tally, jax.Array | None]:
    """A round whose local work is plain Python, between two compiled programmes."""
    state, tally, cohort, item = _compiled_open(plan, inputs, state, tally, item)
    index = compiled_rows(plan, inputs, item) if item.index is None else item.index
    work = inputs.algorithm.local(plan.model, *_compiled_arguments(plan, inputs, state, cohort, item, index))
    state, tally = _compiled_settle(plan, inputs, state, tally, item, work)
    return state, tally, item.steps > 0 if inputs.algorithm.weighs else None


def _rows(plan: Plan, inputs: Inputs, item: Schedule) -> tuple[jax.Array, jax.Array | None]:
    """Mini-batches of the cohorts of one round or many: row numbers [..., S, H, b] and, where needed, which exist."""
    _, pool, keys, _ = inputs
    shape = item.clients.shape
    numbers = jnp.broadcast_to(item.number[..., None], shape)
    clients = jnp.minimum(item.clients, pool.counts.shape[0] - 1)
    rows, present = draw(keys.batches, pool, clients.ravel(), numbers.ravel(), plan.steps, plan.batch_size, plan.widest)
    rows, present = (leaf.reshape(*shape, *leaf.shape[1:]) for leaf in (rows, present))
    return rows, present if plan.ragged else None


_compiled_open, compiled_rows, _compiled_arguments, _compiled_settle = (
    jax.jit(part, static_argnames=("plan",)) for part in (_open, _rows, _arguments, _settle)
)


class Messages(NamedTuple):
    """What one client sends and receives in a round, and what its local steps observe.

    inquiry, report: of the first phase, empty without one. down: what the server sends after that. up: the upload.
    """

    inquiry: Tree
    report: Tree
    down: Tree
    up: Tree
    seen: dict[str, jax.Array]


def cohort_of_one(plan: Plan, inputs: Inputs, server: Tree, clients: Tree) -> Messages:
    """The messages of client 0 alone in round 0, for the shapes: traced where that is possible."""
    algorithm, pool, keys, _ = inputs
    slot = jnp.zeros(1, jnp.int32)
    item = Schedule(slot, jnp.ones(1), jnp.ones(1), jnp.full(1, plan.steps, jnp.int32), jnp.asarray(0, jnp.int32))
    inquiry: Tree = ()
    report: Tree = ()
    state = jax.tree.map(lambda leaf: leaf[slot], clients)
    if algorithm.weighs:
        if algorithm.probes:
            questions = _questions(plan, inputs, server, state, item)
            inquiry, report = questions[0], algorithm.probe(plan.model, *questions)
            state = algorithm.prepare(state, report)
        server, _ = algorithm.weigh(server, report, Cohort(slot, item.weights, item.mass), keys.server)
    rows, present = _rows(plan, inputs, item)
    batches = Batches(pool.features, pool.labels, rows, present, item.steps, plan.uniform_steps, plan.layout)
    down = algorithm.broadcast(server)
    up, _, seen = algorithm.local(plan.model, down, state, batches, keys.noise[None])
    # What `weigh` left alone is the very same array, and need not be sent twice.
    known = [id(leaf) for leaf in jax.tree.leaves(inquiry)]
    news = [leaf for leaf in jax.tree.leaves(down) if id(leaf) not in known]
    first = jax.tree.map(lambda leaf: leaf[0], (report, up))
    return Messages(inquiry, first[0], news, first[1], seen)


compiled_cohort_of_one = jax.jit(cohort_of_one, static_argnames=("plan",))


def _finite(up: Tree) -> jax.Array:
    """bool[S]: whether every entry of a slot's upload is finite."""
    leaves = [jnp.isfinite(leaf).reshape(leaf.shape[0], -1).all(axis=1) for leaf in jax.tree.leaves(up)]
    return jnp.stack(leaves).all(axis=0)


def _renormalised(weights: jax.Array, used: jax.Array) -> jax.Array:
    """The weights [S] of the slots that are used, over their sum; all 0 when none is."""
    weights = jnp.where(used, weights, 0.0)
    total = jnp.sum(weights)
    return weights / jnp.where(total > 0.0, total, 1.0)


def _only(used: jax.Array, tree: Tree) -> Tree:
    """Zero the slots that are not used: a weight of 0 alone would let a NaN through."""
    return jax.tree.map(lambda leaf: jnp.where(used.reshape((-1,) + (1,) * (leaf.ndim - 1)), leaf, 0), tree)

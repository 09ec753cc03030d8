"""Many runs at once: those that share a programme's shape run side by side in it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fedhedge.simulation.arithmetic import arithmetic
from fedhedge.simulation.driver import Simulation
from fedhedge.simulation.rounds import Inputs, Plan, Schedule, State, many_rounds
from fedhedge.simulation.schedule import Table
from fedhedge.simulation.tally import Tally

# On a CPU, weights of several networks side by side leave the cache: such runs go one after another, compiled once.
LARGEST_ON_CPU = 20_000
# More small ones at once gain nothing there either, and would leave other processes nothing to do.
MOST_ON_CPU = 25
MEMORY_BUDGET = 512 * 2**20


def together(simulations: Sequence[Simulation]) -> None:
    """Run simulations to their end, side by side where they share a programme's shape and it pays."""
    groups: dict[Any, list[Simulation]] = {}
    for simulation in simulations:
        groups.setdefault(signature(simulation), []).append(simulation)
    for group in groups.values():
        for part in parts([simulation.options.seed for simulation in group], runs_at_once(group[0])):
            run_part([group[k] for k in part])


def parts(seeds: Sequence[int], at_once: int) -> list[list[int]]:
    """Numbers of the runs with these seeds, of one signature, in parts of at most `at_once` that run side by side.

    Runs with one seed have the same mini-batches, which then are looked up once; where they are too few to fill a
    third of a part, seeds are mixed. Parts of a group are of one size, if they can be, and so compiled once.
    """
    order = sorted(range(len(seeds)), key=seeds.__getitem__)
    groups = [list(group) for _, group in itertools.groupby(order, key=seeds.__getitem__)]
    if 3 * min(len(group) for group in groups) < at_once:
        groups = [order]
    found = []
    for group in groups:
        size = math.ceil(len(group) / math.ceil(len(group) / at_once))
        found += [group[at : at + size] for at in range(0, len(group), size)]
    return found


def run_part(simulations: Sequence[Simulation]) -> None:
    """Run simulations of one signature to their end, in one programme."""
    with arithmetic(simulations[0].algorithm.precision):
        if len(simulations) == 1:
            simulations[0].run(None, resume=False, progress=False)
        else:
            _side_by_side(simulations)


def signature(simulation: Simulation) -> Any:
    """What runs must have in common: everything static, and all shapes."""
    dynamic = (simulation.algorithm, simulation.inputs.pool, simulation.state)
    shapes = tuple((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in jax.tree.leaves(dynamic))
    structure = jax.tree.structure(dynamic)
    options = simulation.options
    faults = options.faults and (options.faults.lost > 0.0, options.faults.forgets > 0.0)
    return simulation.plan, faults, structure, shapes, options.rounds, options.evaluate_every, simulation.chunk


def runs_at_once(simulation: Simulation) -> int:
    """How many runs like this one to compute side by side; it depends on the runs alone, and so do results."""
    if simulation.host_loop or simulation.disk.rows is not None or simulation.algorithm.ends_early:
        return 1
    size = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(simulation.state))
    on_cpu = jax.default_backend() == "cpu"
    if on_cpu and size > LARGEST_ON_CPU:
        return 1
    plan, width = simulation.plan, simulation.law.largest()
    rows = plan.widest if plan.batch_size is None else plan.batch_size * simulation.chunk
    fitting = max(1, int(MEMORY_BUDGET // (8 * (4 * size + width * plan.steps * rows))))
    return min(fitting, MOST_ON_CPU) if on_cpu else fitting


def _side_by_side(simulations: Sequence[Simulation]) -> None:
    first = simulations[0]
    inputs, own_inputs = _joined([simulation.inputs for simulation in simulations])
    state, tally = (_stack([getattr(s, name) for s in simulations]) for name in ("state", "tally"))
    for simulation in simulations:
        simulation.evaluate()
    while not first.over:
        stop = first.next_stop()
        tables, schedules = _rounds(simulations, stop)
        length = jnp.asarray(stop - first.done, jnp.int32)
        shared = all(schedule is schedules[0] for schedule in schedules)
        schedule = schedules[0] if shared else _stack(schedules)
        own = own_inputs + (not shared,) * len(jax.tree.leaves(schedule))
        state, tally, trained = batched_rounds(first.plan, own, (inputs, schedule), state, tally, length)
        each = (_unstack(tree, len(simulations)) for tree in (state, tally, trained))
        for simulation, table, now, seen, who in zip(simulations, tables, *each, strict=True):
            simulation.accept(now, seen, who, table)
        tally = _stack([simulation.tally for simulation in simulations])


@partial(jax.jit, static_argnames=("plan", "own"), donate_argnames=("state",))
def batched_rounds(
    plan: Plan, own: tuple[bool, ...], given: tuple[Inputs, Schedule], state: State, tally: Tally, length: jax.Array
) -> tuple[State, Tally, jax.Array | None]:
    """The same rounds for many runs side by side; state and tally have a leading run axis.

    own: which leaves of `given` have it too. The others are the same for all runs, and what depends on them alone is
    computed once: with the mini-batches of one seed, many models are one wide matrix product.
    """
    leaves, structure = jax.tree.flatten(given)

    def run(leaves: list[jax.Array], state: State, tally: Tally) -> tuple[State, Tally, jax.Array | None]:
        inputs, schedule = jax.tree.unflatten(structure, leaves)
        return many_rounds(plan, inputs, state, tally, schedule, length, early=False)

    return jax.vmap(run, in_axes=([0 if one else None for one in own], 0, 0))(leaves, state, tally)


def _rounds(simulations: Sequence[Simulation], stop: int) -> tuple[list[Table], list[Schedule]]:
    """Who gets through in each run, and the schedule: one object for runs in which they are the same.

    That must not depend on what chance brings in these rounds, or each chunk would be compiled anew.
    """
    keys: list[Any] = []
    for s in simulations:
        everyone = s.law.smallest() == len(s.clients) and s.options.faults is None
        rest = s.options.faults, s.options.weighting, s.options.local_steps
        keys.append((id(s.law), id(s.clients), None if everyone else s.options.seed, *rest))
    of_key = dict(zip(keys, simulations, strict=True))
    tables = {key: simulation.table(stop) for key, simulation in of_key.items()}
    slots = max(simulation.slots(tables[key]) for key, simulation in of_key.items())
    schedules = {key: simulation.schedule(tables[key], slots) for key, simulation in of_key.items()}
    return [tables[key] for key in keys], [schedules[key] for key in keys]


def _joined(trees: Sequence[Any]) -> tuple[Any, tuple[bool, ...]]:
    """One tree for all runs, with each leaf that is the same in all of them once and others stacked; and which are."""
    each = [jax.tree.leaves(tree) for tree in trees]
    own = tuple(not all(_same(leaf, leaves[0]) for leaf in leaves) for leaves in zip(*each, strict=True))
    joined = [_stack(leaves) if one else leaves[0] for one, leaves in zip(own, zip(*each, strict=True), strict=True)]
    return jax.tree.unflatten(jax.tree.structure(trees[0]), joined), own


def _same(leaf: Any, other: Any) -> bool:
    if leaf is other:
        return True
    if jnp.issubdtype(jnp.result_type(leaf), jax.dtypes.prng_key):
        leaf, other = jax.random.key_data(leaf), jax.random.key_data(other)
    return bool(np.array_equal(leaf, other))


def _stack(trees: Sequence[Any]) -> Any:
    def stacked(*leaves: Any) -> jax.Array:
        if jnp.issubdtype(jnp.result_type(leaves[0]), jax.dtypes.prng_key):
            return jnp.stack(leaves)
        # On the host, where many small arrays cost least.
        return jnp.asarray(np.stack([np.asarray(leaf) for leaf in leaves]))

    return jax.tree.map(stacked, *trees)


def _unstack(tree: Any, count: int) -> list[Any]:
    # A copy of its own: the next rounds use up the memory of the state.
    host = jax.tree.map(np.array, tree)
    return [jax.tree.map(lambda leaf, at=k: leaf[at], host) for k in range(count)]

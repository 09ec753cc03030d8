"""Many runs at once: those that share a programme's shape run side by side in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fedhedge.simulation.arithmetic import arithmetic
from fedhedge.simulation.driver import Simulation
from fedhedge.simulation.rounds import Inputs, batched_rounds
from fedhedge.simulation.schedule import Table

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
        at_once = runs_at_once(group[0])
        for start in range(0, len(group), at_once):
            run_part(group[start : start + at_once])


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
    if simulation.host_loop or simulation.disk.rows is not None:
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
    shared = all(simulation.clients is first.clients for simulation in simulations)
    parts = ("algorithm", "keys", "initial")
    algorithm, keys, initial = (_stack([getattr(s.inputs, name) for s in simulations]) for name in parts)
    pool = first.inputs.pool if shared else _stack([s.inputs.pool for s in simulations])
    inputs = Inputs(algorithm, pool, keys, initial)
    state, tally = (_stack([getattr(s, name) for s in simulations]) for name in ("state", "tally"))
    for simulation in simulations:
        simulation.evaluate()
    while not first.over:
        stop = first.next_stop()
        tables = _tables(simulations, stop)
        slots = max(s.slots(table) for s, table in zip(simulations, tables, strict=True))
        schedules = [s.schedule(table, slots) for s, table in zip(simulations, tables, strict=True)]
        length = jnp.asarray(stop - first.done, jnp.int32)
        state, tally, trained = batched_rounds(first.plan, shared, inputs, state, tally, _stack(schedules), length)
        each = (_unstack(tree, len(simulations)) for tree in (state, tally, trained))
        for simulation, table, own, seen, who in zip(simulations, tables, *each, strict=True):
            simulation.accept(own, seen, who, table)
        tally = _stack([simulation.tally for simulation in simulations])


def _tables(simulations: Sequence[Simulation], stop: int) -> list[Table]:
    """Who gets through in each run: drawn once for runs with one law, seed and faults."""
    drawn: dict[Any, Table] = {}
    found = []
    for simulation in simulations:
        key = id(simulation.law), simulation.options.seed, simulation.options.faults
        if key not in drawn:
            drawn[key] = simulation.table(stop)
        found.append(drawn[key])
    return found


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

"""Many runs at once: those that share a programme's shape run side by side in it."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import Algorithm
from fedhedge.models import Model
from fedhedge.simulation.arithmetic import arithmetic
from fedhedge.simulation.driver import Simulation
from fedhedge.simulation.options import Options
from fedhedge.simulation.rounds import Inputs, batched_rounds
from fedhedge.simulation.run import Run

if TYPE_CHECKING:
    from fedhedge.availability import Law
    from fedhedge.data import Clients

# On a CPU, weights of several networks side by side leave the cache: such runs go one after another, compiled once.
LARGEST_ON_CPU = 20_000
MEMORY_BUDGET = 512 * 2**20


def sweep(
    algorithms: Algorithm | Iterable[Algorithm],
    model: Model,
    clients: Clients,
    law: Law,
    *,
    seeds: Iterable[int] = range(5),
    **options: Any,
) -> list[Run]:
    """One run for each algorithm and seed, in that order.

    options: those of `simulate`, except checkpoint, resume and progress.
    Runs of one method with one shape are computed side by side where that is faster; each result is that of
    `simulate` with the same arguments within rounding. Raises what `simulate` raises.
    """
    wanted = [algorithms] if isinstance(algorithms, Algorithm) else algorithms
    checks.instance("algorithms", wanted, Iterable, "one method, or a list of them")
    checks.instance("seeds", seeds, Iterable, "a list of seeds")
    wanted, numbers = list(wanted), list(seeds)
    for algorithm in wanted:
        checks.instance("algorithms", algorithm, Algorithm, "methods of fedhedge.algorithms")
    for name in options:
        checks.one_of("option", name, [field.name for field in dataclasses.fields(Options) if field.name != "seed"])
    if not wanted or not numbers:
        raise checks.InvalidInput("algorithms, seeds", (len(wanted), len(numbers)), "at least one of each")
    simulations = []
    for algorithm, seed in itertools.product(wanted, numbers):
        with arithmetic(algorithm.precision):
            simulations.append(Simulation(algorithm, model, clients, law, Options(seed=seed, **options)))
    together(simulations)
    return [simulation.result() for simulation in simulations]


def together(simulations: Sequence[Simulation]) -> None:
    """Run simulations to their end, side by side where they share a programme's shape and it pays."""
    groups: dict[Any, list[Simulation]] = {}
    for simulation in simulations:
        groups.setdefault(_signature(simulation), []).append(simulation)
    for group in groups.values():
        with arithmetic(group[0].algorithm.precision):
            at_once = _runs_at_once(group[0])
            for start in range(0, len(group), at_once):
                part = group[start : start + at_once]
                if len(part) == 1:
                    part[0].run(None, resume=False, progress=False)
                else:
                    _side_by_side(part)


def _signature(simulation: Simulation) -> Any:
    """What runs must have in common: everything static, and all shapes."""
    dynamic = (simulation.algorithm, simulation.inputs.pool, simulation.state)
    shapes = tuple((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in jax.tree.leaves(dynamic))
    structure = jax.tree.structure(dynamic)
    options = simulation.options
    faults = options.faults and (options.faults.lost > 0.0, options.faults.forgets > 0.0)
    return simulation.plan, faults, structure, shapes, options.rounds, options.evaluate_every, simulation.chunk


def _runs_at_once(simulation: Simulation) -> int:
    if simulation.host_loop:
        return 1
    size = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(simulation.state))
    if jax.default_backend() == "cpu" and size > LARGEST_ON_CPU:
        return 1
    plan, width = simulation.plan, simulation.law.largest()
    rows = plan.widest if plan.batch_size is None else plan.batch_size * simulation.chunk
    return max(1, int(MEMORY_BUDGET // (8 * (4 * size + width * plan.steps * rows))))


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
        tables = [s.table(stop) for s in simulations]
        slots = max(s.slots(table) for s, table in zip(simulations, tables, strict=True))
        schedules = [s.schedule(table, slots) for s, table in zip(simulations, tables, strict=True)]
        length = jnp.asarray(stop - first.done, jnp.int32)
        state, tally, trained = batched_rounds(first.plan, shared, inputs, state, tally, _stack(schedules), length)
        each = (_unstack(tree, len(simulations)) for tree in (state, tally, trained))
        for simulation, table, schedule, own, seen, who in zip(simulations, tables, schedules, *each, strict=True):
            simulation.accept(own, seen, table, schedule, who)
        tally = _stack([simulation.tally for simulation in simulations])


def _stack(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *trees)


def _unstack(tree: Any, count: int) -> list[Any]:
    return [jax.tree.map(lambda leaf, at=k: leaf[at], tree) for k in range(count)]

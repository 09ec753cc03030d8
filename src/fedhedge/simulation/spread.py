"""Work on several processes, or machines, through joblib."""

from __future__ import annotations

import dataclasses
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import jax

from fedhedge.algorithms.base import Algorithm, traced
from fedhedge.simulation.planned import Sweep
from fedhedge.simulation.run import Run

# Sweeps that this process has a part in, so that a worker takes the rows and compiles once, and not for each part.
_HELD: dict[str, Sweep] = {}
Item = TypeVar("Item")
Result = TypeVar("Result")
_COMPILATION = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")


def spread(sweep: Sweep, parts: Sequence[Sequence[int]], n_jobs: int | None) -> Iterator[tuple[int, list[Run]]]:
    """(number of a part, its runs) as parts get done, in any order; runs come without their model."""
    import joblib

    if len(parts) == 1 or joblib.effective_n_jobs(n_jobs) == 1:
        yield from ((number, sweep.runs(part)) for number, part in enumerate(parts))
        return
    token = uuid.uuid4().hex
    _HELD[token] = sweep
    try:
        yield from in_processes(partial(_runs, token, sweep), enumerate(parts), n_jobs)
    finally:
        del _HELD[token]


def in_processes(work: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None) -> Iterator[Result]:
    """work(item) for each item, in any order, by `n_jobs` processes of one thread each (1: by this one).

    Pickle carries what joblib and its own child processes say to each other, by pipes and, for large arrays, by files
    in a folder that it makes for this process alone (mode 0700) and removes: nothing is read that came from elsewhere.
    """
    import joblib

    compilation = {name: getattr(jax.config, name) for name in _COMPILATION}
    # An item takes longer than it takes to hand it over; batches of them would only end unevenly.
    workers = joblib.Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")
    yield from workers(joblib.delayed(_worked)(os.getpid(), compilation, work, item) for item in items)


def _worked(parent: int, compilation: dict[str, Any], work: Callable[[Item], Result], item: Item) -> Result:
    if os.getpid() != parent:
        # Before JAX starts its threads: workers that have one each do not get into each other's way.
        os.environ["PJRT_NPROC"] = "1"
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        for name, value in compilation.items():
            jax.config.update(name, value)  # type: ignore[no-untyped-call]
    return work(item)


def _runs(token: str, sweep: Sweep, numbered: tuple[int, Sequence[int]]) -> tuple[int, list[Run]]:
    """One part, in a worker or here."""
    number, part = numbered
    if token not in _HELD:
        _HELD.clear()
        _HELD[token] = sweep
        for algorithm in sweep.algorithms:
            _register(algorithm)
    return number, [dataclasses.replace(run, model=None) for run in _HELD[token].runs(part)]  # type: ignore[arg-type]


def _register(algorithm: Algorithm) -> None:
    """A class of the caller's own script arrives by value, without what its decorator told JAX."""
    while unknown := [leaf for leaf in jax.tree.leaves(algorithm) if isinstance(leaf, Algorithm)]:
        traced(type(unknown[0]))

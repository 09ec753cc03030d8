"""Parts of a sweep on several processes, or machines, through joblib."""

from __future__ import annotations

import dataclasses
import os
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import jax

from fedhedge.algorithms.base import Algorithm, traced
from fedhedge.simulation.run import Run

if TYPE_CHECKING:
    from fedhedge.simulation.sweeping import Sweep

# Sweeps that this process has a part in, so that a worker takes the rows and compiles once, and not for each part.
_HELD: dict[str, Sweep] = {}
_COMPILATION = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")


def spread(sweep: Sweep, parts: Sequence[Sequence[int]], n_jobs: int | None) -> Iterator[tuple[int, list[Run]]]:
    """(number of a part, its runs) as parts get done, in any order; runs of other processes come without their model.

    Pickle carries what joblib and its own child processes say to each other, by pipes and, for large arrays, by files
    in a folder that it makes for this process alone (mode 0700) and removes: nothing is read that came from elsewhere.
    """
    import joblib

    if len(parts) == 1 or joblib.effective_n_jobs(n_jobs) == 1:
        yield from ((number, sweep.runs(part)) for number, part in enumerate(parts))
        return
    token = uuid.uuid4().hex
    _HELD[token] = sweep
    compilation = {name: getattr(jax.config, name) for name in _COMPILATION}
    try:
        # A part takes longer than it takes to hand it over; batches of them would only end unevenly.
        workers = joblib.Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")
        yield from workers(
            joblib.delayed(_work)(token, sweep, number, part, compilation) for number, part in enumerate(parts)
        )
    finally:
        del _HELD[token]


def _work(
    token: str, sweep: Sweep, number: int, part: Sequence[int], compilation: dict[str, Any]
) -> tuple[int, list[Run]]:
    """One part, in a worker."""
    if token not in _HELD:
        # Before JAX starts its threads: workers that have one each do not get into each other's way.
        os.environ["PJRT_NPROC"] = "1"
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        for name, value in compilation.items():
            jax.config.update(name, value)  # type: ignore[no-untyped-call]
        _HELD.clear()
        _HELD[token] = sweep
        for algorithm in sweep.algorithms:
            _register(algorithm)
    return number, [dataclasses.replace(run, model=None) for run in _HELD[token].runs(part)]  # type: ignore[arg-type]


def _register(algorithm: Algorithm) -> None:
    """A class of the caller's own script arrives by value, without what its decorator told JAX."""
    while unknown := [leaf for leaf in jax.tree.leaves(algorithm) if isinstance(leaf, Algorithm)]:
        traced(type(unknown[0]))

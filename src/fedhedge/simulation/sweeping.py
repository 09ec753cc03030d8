"""One run for each method and seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from fedhedge import checks
from fedhedge.algorithms.base import Algorithm
from fedhedge.models import Model
from fedhedge.simulation.options import Options
from fedhedge.simulation.planned import Sweep
from fedhedge.simulation.run import Run
from fedhedge.simulation.spread import spread

if TYPE_CHECKING:
    from fedhedge.availability import Law
    from fedhedge.data import Clients

MOST_JOBS = 10_000


def sweep(
    algorithms: Algorithm | Iterable[Algorithm],
    model: Model,
    clients: Clients,
    law: Law,
    *,
    seeds: Iterable[int] = range(5),
    n_jobs: int | None = None,
    progress: bool | None = None,
    **options: Any,
) -> list[Run]:
    """One run for each algorithm and seed, in that order.

    n_jobs: processes that share the work, each on one core; -1: one for each core; None: what joblib's
    `parallel_config` says, else this process alone. Other backends of joblib (Ray, Dask) spread it over machines.
    progress: a bar of runs on standard error; None shows it on a terminal only. options: those of `simulate`, except
    checkpoint and resume.
    Runs of one method with one shape are computed side by side where that is faster; each result is that of
    `simulate` with the same arguments within rounding, and the same bit for bit for every `n_jobs`.
    Raises what `simulate` raises.
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
    if n_jobs is not None and (checks.integer("n_jobs", n_jobs, high=MOST_JOBS) < -1 or n_jobs == 0):
        raise checks.InvalidInput("n_jobs", n_jobs, "None, a number of processes, or -1 for one on each core")
    hidden = None if progress is None else not checks.boolean("progress", progress)

    whole = Sweep(wanted, [Options(seed=seed, **options) for seed in numbers], model, clients, law)
    parts, one = whole.parts()
    # Bound once, so that runs with one seed can see that their rounds are the same.
    whole = dataclasses.replace(whole, law=one.law)
    runs: dict[int, Run] = {}
    with tqdm(total=len(wanted) * len(numbers), desc="sweep", unit="run", disable=hidden, leave=False) as bar:
        for number, found in spread(whole, parts, n_jobs):
            for k, run in zip(parts[number], found, strict=True):
                runs[k] = dataclasses.replace(run, model=one.model)
            bar.update(len(found))
    return [runs[k] for k in sorted(runs)]

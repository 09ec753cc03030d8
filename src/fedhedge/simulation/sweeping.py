"""One run for each method and seed: planned once, in parts that do not depend on where they are computed."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from fedhedge import checks
from fedhedge.algorithms.base import Algorithm
from fedhedge.models import Model
from fedhedge.simulation.arithmetic import arithmetic
from fedhedge.simulation.driver import Simulation
from fedhedge.simulation.options import Options
from fedhedge.simulation.run import Run
from fedhedge.simulation.side_by_side import run_part, runs_at_once, signature
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


@dataclasses.dataclass(frozen=True, eq=False)
class Sweep:
    """What the runs of a sweep are made of; run k is of method k // len(each) with options each[k % len(each)]."""

    algorithms: Sequence[Algorithm]
    each: Sequence[Options]
    model: Model
    clients: Clients
    law: Law

    def simulation(self, k: int) -> Simulation:
        """Run k before its first round."""
        algorithm = self.algorithms[k // len(self.each)]
        with arithmetic(algorithm.precision):
            return Simulation(algorithm, self.model, self.clients, self.law, self.each[k % len(self.each)])

    def parts(self) -> tuple[list[list[int]], Simulation]:
        """Runs that are computed together, and one of them; warns of what a method's settings cannot do.

        Seeds differ in nothing that matters here, so that one run of each method is set up, and dropped again.
        """
        groups: dict[Any, list[int]] = {}
        sizes: dict[Any, int] = {}
        for first in range(0, len(self.algorithms) * len(self.each), len(self.each)):
            one = self.simulation(first)
            for text in one.warned:
                warnings.warn(f"{one.algorithm.name}: {text}", stacklevel=3)
            key = signature(one)
            groups.setdefault(key, []).extend(range(first, first + len(self.each)))
            sizes[key] = runs_at_once(one)
        parts = [
            group[at : at + sizes[key]] for key, group in groups.items() for at in range(0, len(group), sizes[key])
        ]
        return parts, one

    def runs(self, part: Sequence[int]) -> list[Run]:
        """The runs of one part, in its order."""
        simulations = [self.simulation(k) for k in part]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            run_part(simulations)
        return [simulation.result() for simulation in simulations]

"""Runs of an experiment, each kept in a file as it is done, so that the same command goes on where it was stopped."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tqdm import tqdm

from fedhedge.algorithms import Algorithm
from fedhedge.availability import Law
from fedhedge.data import Clients
from fedhedge.models import Model
from fedhedge.simulation import CheckpointMismatch, Run
from fedhedge.simulation.arithmetic import arithmetic
from fedhedge.simulation.checkpoint import differences
from fedhedge.simulation.driver import Simulation
from fedhedge.simulation.options import Options
from fedhedge.simulation.settings import settings
from fedhedge.simulation.side_by_side import signature, together

Jobs = Mapping[str, Sequence["Job"]]


@dataclass(frozen=True)
class Job:
    """One run. name: of its file, unlike that of any other run in the same folder. options: of `simulate`."""

    name: str
    algorithm: Algorithm
    model: Model
    clients: Clients
    law: Law
    options: Mapping[str, Any] = field(default_factory=dict)

    def simulation(self) -> Simulation:
        """The run before its first round."""
        with arithmetic(self.algorithm.precision):
            return Simulation(self.algorithm, self.model, self.clients, self.law, Options(**self.options))

    def settings(self) -> dict[str, Any]:
        """All that its result depends on."""
        return settings(self.algorithm, self.model, self.clients, self.law, Options(**self.options))


def train(
    jobs: Sequence[Job], folder: Path, *, side_by_side: bool = False, quiet: bool = False, title: str = "training"
) -> list[Run]:
    """Do the runs that are not in `folder` yet, keep each as NAME.npz, and return all in the order of the jobs.

    side_by_side: compute those of one shape in one programme (`fh.sweep`), which pays for small models; they are then
    kept once all of that shape are done. Otherwise one after another, each resumed where it was cut.
    Raises Diverged, and CheckpointMismatch when a file there is of other settings, or damaged.
    """
    paths = [folder / f"{job.name}.npz" for job in jobs]
    runs = [_kept(job, path) for job, path in zip(jobs, paths, strict=True)]
    missing = [k for k, run in enumerate(runs) if run is None]
    with tqdm(total=len(jobs), initial=len(jobs) - len(missing), desc=title, unit="run", disable=_hidden(quiet)) as bar:
        if side_by_side and missing:
            groups: dict[Any, dict[int, Simulation]] = {}
            for k in missing:
                simulation = jobs[k].simulation()
                groups.setdefault(signature(simulation), {})[k] = simulation
            for group in groups.values():
                with warnings.catch_warnings():
                    # What a method says of its settings is in the run, and on its page.
                    warnings.simplefilter("ignore", UserWarning)
                    together(list(group.values()))
                for k, simulation in group.items():
                    runs[k] = simulation.result()
                    runs[k].save(paths[k])  # type: ignore[union-attr]
                    bar.update()
        else:
            for k in missing:
                bar.set_description(f"{title}, {jobs[k].name}")
                runs[k] = _one(jobs[k], paths[k])
                bar.update()
    return [run for run in runs if run is not None]


def _hidden(quiet: bool) -> bool | None:
    # None: hidden where the output is no terminal.
    return True if quiet else None


def _one(job: Job, path: Path) -> Run:
    unfinished = path.with_suffix("")
    with arithmetic(job.algorithm.precision), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        run = job.simulation().run(unfinished, True, False)
    run.save(path)
    for leftover in unfinished.glob("*"):
        leftover.unlink()
    unfinished.rmdir()
    return run


def _kept(job: Job, path: Path) -> Run | None:
    """The run that is there already."""
    if not path.exists():
        return None
    try:
        run = Run.load(path)
    except CheckpointMismatch as error:
        raise CheckpointMismatch(f"{error}; remove it to compute it again") from None
    lines = differences(run.settings, job.settings())
    if lines:
        raise CheckpointMismatch(f"{path} is of another run: {'; '.join(lines)} (take another folder by --out)")
    return run

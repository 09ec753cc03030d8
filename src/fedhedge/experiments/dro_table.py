"""The second paper's comparison of methods: five small tables and the pump, private methods at one exact budget."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from fedhedge import files
from fedhedge.experiments import dro_report
from fedhedge.experiments.dro_cells import FOLDER, Cell, command, kept
from fedhedge.experiments.dro_methods import METHODS, Method
from fedhedge.experiments.dro_settings import FOLDS, SEEDS, Setting, pump, small_tables
from fedhedge.experiments.selection import Metric, accuracy, final_scores, fold_scores, macro_f1, simulated
from fedhedge.experiments.tables_data import FLIPPED, Problem
from fedhedge.simulation.spread import in_processes

METRICS: dict[str, Metric] = {"macro-F1": macro_f1, "accuracy": accuracy}


@dataclass(frozen=True)
class Size:
    """How much is computed: seeds of the splits and of the noise, folds for choosing, columns and lines."""

    seeds: tuple[int, ...]
    folds: int
    settings: tuple[Setting, ...]
    methods: tuple[Method, ...] = METHODS


def paper(out: Path, *, fast: bool = False, quiet: bool = False) -> pd.DataFrame:
    """Both protocols as the paper has them, features of the small tables in [0, 1]."""
    whole = Size(SEEDS, FOLDS, (*small_tables("unit"), *pump()))
    return _run("dro-table", whole, out, fast=fast, quiet=quiet)


def centred(out: Path, *, fast: bool = False, quiet: bool = False) -> pd.DataFrame:
    """The small tables with features in [-1, 1], which costs no privacy that [0, 1] does not."""
    return _run("dro-table-centred", Size(SEEDS, FOLDS, small_tables("centred")), out, fast=fast, quiet=quiet)


def _run(name: str, whole: Size, out: Path, *, fast: bool, quiet: bool) -> pd.DataFrame:
    if not fast:
        return run(whole, out, name=name, quiet=quiet, n_jobs=-1)
    part = Size(whole.seeds[:3], 2, whole.settings[:2])
    if not quiet:
        names = ", ".join(setting.name for setting in part.settings)
        print(
            f"a part only: {names} ({len(part.settings)} of {len(whole.settings)} columns), {len(part.seeds)} of "
            f"{len(whole.seeds)} seeds, {part.folds} folds of {whole.folds} for choosing",
            flush=True,
        )
    return run(part, out, name=name, fast=True, quiet=quiet, n_jobs=-1)


def run(
    size: Size, out: Path, *, name: str = "dro-table", fast: bool = False, quiet: bool = False, n_jobs: int = 1
) -> pd.DataFrame:
    """Train every method on every setting; write scores, table, differences, text and page; returns the table.

    name, fast: what `fedhedge reproduce` is given for it. n_jobs: processes, -1 for one on each core. Raises as
    `computed` does.
    """
    cells = computed(size, out, quiet=quiet, n_jobs=n_jobs)
    return dro_report.write(out, command(name, fast), name, size.settings, size.methods, cells, quiet=quiet)


def computed(size: Size, out: Path, *, quiet: bool = False, n_jobs: int = 1) -> dict[tuple[str, str], Cell]:
    """Scores and choices of every method on every setting, by (setting, method).

    Cells that are in `out` already are not computed again. Raises CheckpointMismatch when they are of another form, or
    damaged.
    """
    # What no budget touches is the same in all columns of a table, and a choice that is taken over comes first.
    tasks: dict[tuple[str, str], list[tuple[Setting, Method]]] = {}
    seen: set[Path] = set()
    for setting in size.settings:
        for method in size.methods:
            place = _path(out, setting, method)
            if place not in seen and _kept(size, setting, method, out) is None:
                column = setting.name if method.private else setting.table
                tasks.setdefault((column, method.choice_of or method.name), []).append((setting, method))
            seen.add(place)
    # The exact methods take longest.
    queue = sorted(tasks.values(), key=lambda task: task[0][1].private)
    with tqdm(total=sum(map(len, queue)), unit="cell", disable=True if quiet else None) as bar:
        # Each finished cell is a file, so that a run that is stopped loses the cells at work only.
        for done in in_processes(functools.partial(_made, size, out), queue, n_jobs):
            bar.update(done)
    cells = {}
    for setting in size.settings:
        for method in size.methods:
            cell = _kept(size, setting, method, out)
            assert cell is not None
            cells[setting.name, method.name] = cell
    return cells


def _made(size: Size, out: Path, task: Sequence[tuple[Setting, Method]]) -> int:
    """Compute the cells of a task and write them; returns how many."""
    by_name = {method.name: method for method in size.methods}
    for setting, method in task:
        first = by_name.get(method.choice_of or "")
        earlier = None if first is None else _kept(size, setting, first, out)
        problems = _problems(setting, size.seeds, size.folds)
        cell = {"described": _described(size, setting, method)} | _computed(setting, method, problems, earlier)
        files.write_json(_path(out, setting, method), cell)
    return len(task)


@functools.lru_cache(maxsize=1)
def _problems(setting: Setting, seeds: tuple[int, ...], folds: int) -> dict[int, Problem]:
    """The splits of a column, which tasks that follow each other share."""
    return setting.problems(seeds, folds)


def _path(out: Path, setting: Setting, method: Method) -> Path:
    return out / FOLDER / f"{setting.name if method.private else setting.table}-{method.name}.json"


def _kept(size: Size, setting: Setting, method: Method, out: Path) -> Cell | None:
    described = _described(size, setting, method)
    candidates = len(described["candidates"])
    intact = functools.partial(_intact, seeds=len(size.seeds), candidates=candidates)
    return kept(_path(out, setting, method), described, intact)


def _described(size: Size, setting: Setting, method: Method) -> dict[str, Any]:
    """All that a cell depends on, as JSON holds it."""
    candidates = method.candidates(setting.privacy, setting.rounds)
    budget = {"rounds": setting.rounds, "budget": asdict(setting.privacy)} if method.private else {}
    described: dict[str, Any] = files.plain(
        budget
        | {
            "table": setting.table,
            "scaling": setting.scaling,
            "metric": setting.metric,
            "flipped": FLIPPED,
            "seeds": size.seeds,
            "folds": size.folds,
            "candidates": [candidate.settings() for candidate in candidates],
        }
    )
    return described


def _intact(cell: Cell, seeds: int, candidates: int) -> bool:
    """Whether a cell holds a number and a choice for each seed."""
    values, chosen, scores = (cell[name] for name in ("values", "chosen", "fold_scores"))
    return (
        np.shape(values) == np.shape(chosen) == (seeds,)
        and np.ndim(scores) == 2
        and len(scores) == seeds
        and bool(np.isfinite(values).all() and np.isfinite(scores).all())
        and all(type(k) is int and 0 <= k < candidates for k in chosen)
    )


def _computed(
    setting: Setting, method: Method, problems: dict[int, Problem], earlier: dict[str, Any] | None
) -> dict[str, Any]:
    """Choices and scores of one method, by seed in the order of the problems."""
    candidates = method.candidates(setting.privacy, setting.rounds)
    metric, simulation = METRICS[setting.metric], simulated(setting.rounds)
    scores = np.zeros((len(problems), 1))
    if earlier is not None:
        chosen = earlier["chosen"]
    else:
        if len(candidates) > 1:
            scores = fold_scores(candidates, problems, metric, method.choosing or simulation)
        # A tie goes to the earlier candidate.
        chosen = scores.argmax(axis=1).tolist()
    values = final_scores([candidates[k] for k in chosen], problems, metric, method.final or simulation)
    return {"values": values, "chosen": chosen, "fold_scores": scores.tolist()}

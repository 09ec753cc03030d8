"""Native multiclass against one-vs-all where classes overlap and line up: the second paper's appendix B.4."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedhedge.algorithms import DroAdmm, OneVsAllDro
from fedhedge.evaluation import paired_t
from fedhedge.experiments.dro_cells import Part, command, finished
from fedhedge.experiments.dro_methods import EXACT_ROUNDS, EXACT_TOLERANCE, centralised
from fedhedge.experiments.dro_plots import below_legend, difference, legend, lines, with_interval
from fedhedge.experiments.dro_settings import SEEDS
from fedhedge.experiments.dro_synthetic import Arc
from fedhedge.experiments.registry import EXPERIMENTS
from fedhedge.experiments.selection import Job, accuracy, fold_scores, macro_f1, score, simulated
from fedhedge.experiments.tables_data import Floats, Labels
from fedhedge.report.layout import figure, headline
from fedhedge.report.plot import Plot
from fedhedge.report.section import Section, in_terminal, write_section
from fedhedge.report.style import looks, settings
from fedhedge.report.tables import Table

NAME = "dro-correlated"
FOLDS, RADII = 2, (1e-4, 1e-3, 1e-2)
METHODS: dict[str, type[DroAdmm]] = {"native": DroAdmm, "one-vs-all": OneVsAllDro}
LINE, RING, BETWEEN = Arc(4, 0.0, 0.2), Arc(4, 1.0, 0.2), Arc(4, 0.5, 0.2)
# Where both are trained by consensus ADMM as well, and not by one solve on all rows alone.
FEDERATED = (LINE, BETWEEN, RING)


def worst_recall(labels: Labels, predicted: Labels) -> float:
    """Least share of a class's rows that are predicted as that class."""
    return min(float(np.mean(predicted[labels == k] == k)) for k in np.unique(labels))


METRICS = {"macro-F1": macro_f1, "accuracy": accuracy, "worst recall": worst_recall}


@dataclass(frozen=True)
class Sweep:
    """One panel: problems along a parameter."""

    title: str
    parameter: str
    arcs: tuple[Arc, ...]

    @property
    def x(self) -> list[float]:
        """The parameter's values."""
        return [float(getattr(arc, self.parameter)) for arc in self.arcs]


SWEEPS = (
    Sweep("bend: line (0) to ring (1)", "bend", tuple(Arc(4, bend, 0.2) for bend in (0.0, 0.25, 0.5, 0.75, 1.0))),
    Sweep("overlap, on a line", "overlap", tuple(Arc(4, 0.0, overlap) for overlap in (0.1, 0.2, 0.35, 0.5))),
    Sweep("overlap, on a ring", "overlap", tuple(Arc(4, 1.0, overlap) for overlap in (0.1, 0.2, 0.35, 0.5))),
    Sweep("number of classes, on a line", "classes", tuple(Arc(k, 0.0, 0.2) for k in (3, 4, 6))),
    Sweep("share of wrong labels, on a line", "flipped", tuple(Arc(4, 0.0, 0.2, flipped=f) for f in (0, 0.1, 0.2))),
    Sweep("correlation of features, half bent", "correlation", tuple(Arc(4, 0.5, 0.2, c) for c in (0.0, 0.9))),
)


def main(out: Path, *, fast: bool = False, quiet: bool = False) -> pd.DataFrame:
    """Write scores.csv, differences.csv, the figures and the page to `out`; returns the differences.

    scores: classes, bend, overlap, correlation, flipped, training ("central" or "federated"), method, metric, seed,
    value. differences: native minus one-vs-all, mean over seeds with its paired 95 % interval and p-value. Raises
    CheckpointMismatch, see `dro_cells.finished`.
    """
    shown, seeds = (SWEEPS[:2], SEEDS[:3]) if fast else (SWEEPS, SEEDS)
    return run(shown, seeds, out, federated=() if fast else FEDERATED, fast=fast, quiet=quiet)


def run(
    shown: Sequence[Sweep],
    seeds: Sequence[int],
    out: Path,
    *,
    federated: Sequence[Arc] = (),
    fast: bool = False,
    quiet: bool = False,
) -> pd.DataFrame:
    """`main` for these sweeps and seeds."""
    arcs = list(dict.fromkeys(arc for sweep in shown for arc in sweep.arcs))
    parts = [_part(arc, method, seeds, arc in federated) for arc in arcs for method in METHODS]
    cells = finished(out, parts, quiet=quiet)
    scores, apart = [], []
    for arc in arcs:
        both = {method: cells[_name(arc, method)] for method in METHODS}
        for training in ("central", *(("federated",) if arc in federated else ())):
            for number, metric in enumerate(METRICS):
                pair = {method: cell[training][number] for method, cell in both.items()}
                about = asdict(arc) | {"training": training, "metric": metric}
                for method, line in pair.items():
                    scores += [
                        about | {"method": method, "seed": s, "value": v} for s, v in zip(seeds, line, strict=True)
                    ]
                apart.append(about | vars(paired_t(*pair.values())))
    differences = pd.DataFrame(apart)
    values = {(arc, method): np.asarray(cells[_name(arc, method)]["central"]) for arc in arcs for method in METHODS}
    section = Section(
        NAME,
        EXPERIMENTS[NAME].title,
        [*text(len(seeds)), *verdicts(differences)],
        command(NAME, fast),
        tables={sweep.title: table(sweep, values) for sweep in shown} | _consensus(cells, federated),
        plots=[
            plot(f"{NAME}-{number}", shown[start : start + 3], values)
            for number, start in enumerate(range(0, len(shown), 3), start=1)
        ],
        data={"scores": pd.DataFrame(scores), "differences": differences},
    )
    write_section(out, section)
    if not quiet:
        print(in_terminal(section))
        print("\n".join(["", *verdicts(differences)]))
    return differences


def _name(arc: Arc, method: str) -> str:
    numbers = (arc.classes, arc.bend, arc.overlap, arc.correlation, arc.flipped)
    return "-".join([*(f"{number:g}" for number in numbers), method])


def _part(arc: Arc, method: str, seeds: Sequence[int], federated: bool) -> Part:
    candidates = [METHODS[method](radius=radius, norm="l1", tolerance=EXACT_TOLERANCE) for radius in RADII]
    described: dict[str, Any] = asdict(arc) | {"seeds": list(seeds), "folds": FOLDS, "federated": federated}
    described["candidates"] = [candidate.settings() for candidate in candidates]
    shape = (len(METRICS), len(seeds))
    shapes: dict[str, tuple[int, ...]] = {"central": shape, "chosen": (len(seeds),)}
    if federated:
        shapes["federated"] = shape
    return Part(_name(arc, method), described, functools.partial(_measured, arc, candidates, seeds, federated), shapes)


def _measured(arc: Arc, candidates: Sequence[DroAdmm], seeds: Sequence[int], federated: bool) -> dict[str, Any]:
    """Every metric by seed on fresh test rows, the radius chosen by macro-F1 on the folds."""
    problems = {seed: arc.problem(seed, FOLDS) for seed in seeds}
    chosen = fold_scores(candidates, problems, macro_f1, centralised).argmax(axis=1)
    jobs = [Job(candidates[k], problems[seed].whole.clients, seed) for k, seed in zip(chosen, seeds, strict=True)]
    found: dict[str, Any] = {"chosen": [RADII[k] for k in chosen]}
    for training in ("central", *(("federated",) if federated else ())):
        models = (centralised if training == "central" else simulated(EXACT_ROUNDS))(jobs)
        found[training] = [
            [score(model, problems[seed].whole, metric) for model, seed in zip(models, seeds, strict=True)]
            for metric in METRICS.values()
        ]
    return found


def text(seeds: int) -> list[str]:
    """The problems and how they are solved."""
    return [
        "Gaussian classes in the plane with a constant third feature; means at distance 1 from their neighbours on a "
        "line (bend 0), a ring (bend 1) or an arc between; overlap is the standard deviation within a class. Four "
        f"classes and no wrong labels unless said otherwise, {LINE.per_class} rows of each class at four clients of "
        f"unlike shares, {seeds} seeds, fresh test rows; mean with 95 % intervals, differences paired by seed.",
        "Native is the robust Crammer-Singer model, one-vs-all K binary robust models; each has its own radius, chosen "
        f"from {', '.join(f'{radius:g}' for radius in RADII)} by macro-F1 on {FOLDS} folds, for each seed. Both are "
        "solved exactly on the rows of all clients together, which is what consensus tends to; where it says so, by "
        f"{EXACT_ROUNDS} rounds of consensus at the same radius.",
    ]


def verdicts(differences: pd.DataFrame) -> list[str]:
    """For which problems native is surely ahead, surely behind, and neither, by metric."""
    said = []
    for (training, metric), part in differences.groupby(["training", "metric"], sort=False):
        ahead, behind = part[part["low"] > 0], part[part["high"] < 0]
        where = ", ".join(_problem(row) for _, row in behind.iterrows())
        even = part.drop(ahead.index).drop(behind.index)
        open_ = ", ".join(_problem(row) for _, row in even.iterrows())
        said.append(
            f"{metric}, {training}: native surely ahead on {len(ahead)} of {len(part)} problems, surely behind on "
            f"{len(behind)}{f' ({where})' if where else ''}, undecided on {len(even)}{f' ({open_})' if open_ else ''}."
        )
    return said


def _problem(row: pd.Series[Any]) -> str:
    more = [f"{name} {row[name]:g}" for name in ("correlation", "flipped") if row[name]]
    return " ".join([f"K {row['classes']}", f"bend {row['bend']:g}", f"overlap {row['overlap']:g}", *more])


def table(sweep: Sweep, values: Mapping[tuple[Arc, str], Floats]) -> Table:
    """Each metric of both methods and the difference, along a sweep."""
    rows = []
    for number, metric in enumerate(METRICS):
        along = {method: [values[arc, method][number] for arc in sweep.arcs] for method in METHODS}
        rows += [[f"{metric}, {method}", *map(with_interval, line)] for method, line in along.items()]
        rows.append([f"{metric}, difference", *map(difference, *along.values())])
    return Table([sweep.parameter, *[f"{x:g}" for x in sweep.x]], rows)


def _consensus(cells: Mapping[str, Mapping[str, Any]], federated: Sequence[Arc]) -> dict[str, Table]:
    """The same for the problems that were solved by consensus."""
    if not federated:
        return {}
    values = {
        (arc, method): np.asarray(cells[_name(arc, method)]["federated"]) for arc in federated for method in METHODS
    }
    return {"by consensus ADMM, bend": table(Sweep("", "bend", tuple(federated)), values)}


def plot(name: str, shown: Sequence[Sweep], values: Mapping[tuple[Arc, str], Floats]) -> Plot:
    """Macro-F1 of both methods, a panel for each sweep."""
    styles = looks(list(METHODS))
    with settings():
        room = {"left": 0.55, "right": 0.12, "top": 0.38, "bottom": 0.55 + below_legend(list(styles)), "gap": 0.85}
        made, panels = figure([1.4] * len(shown), **room)
        for axes, sweep in zip(panels, shown, strict=True):
            along = {m: [values[arc, m][0] for arc in sweep.arcs] for m in METHODS}
            lines(axes, sweep.x, along, styles, points=True)
            axes.set_xticks(sweep.x, [f"{x:g}" for x in sweep.x])
            axes.set_xlabel(sweep.title)
            headline(axes, "Macro-F1")
        legend(made, styles)
    first = shown[0]
    ends = [f"{m} {values[arc, m][0].mean():.2f}" for arc in (first.arcs[0], first.arcs[-1]) for m in METHODS]
    alt = f"{first.title}: {', '.join(ends[:2])} at first, {', '.join(ends[2:])} at last."
    return Plot(name, alt, "Mean over seeds, bars: 95 % intervals; points are moved apart sideways.", made)

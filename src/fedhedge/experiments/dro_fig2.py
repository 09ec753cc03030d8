"""Convergence by round: residuals of the consensus and the excess of the robust objective over its optimum."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedhedge.algorithms import Algorithm, DpDroAdmm, DroAdmm
from fedhedge.experiments.dro_cells import Cell, Part, command, finished
from fedhedge.experiments.dro_fig1 import DELTA, EPSILON, ROUNDS, setting
from fedhedge.experiments.dro_optimum import Robust, mixture_risk, optimum
from fedhedge.experiments.dro_plots import below_legend, interval, legend, lines, with_interval
from fedhedge.experiments.dro_recorded import Trace, recorded, rounds_to_share
from fedhedge.experiments.dro_settings import SEEDS, Setting
from fedhedge.experiments.registry import EXPERIMENTS
from fedhedge.experiments.selection import Job, accuracy, score
from fedhedge.experiments.tables_data import FLIPPED, Floats, Problem
from fedhedge.privacy import Privacy
from fedhedge.report.layout import figure, headline, logarithmic
from fedhedge.report.plot import Plot
from fedhedge.report.section import Section, in_terminal, write_section
from fedhedge.report.style import looks, settings
from fedhedge.report.tables import Table

NAME = "dro-fig2"
FAST_ROUNDS, FAST_SEEDS = 50, 3
RADIUS, LABEL_COST = 0.01, 0.5
# Excess that counts as converged, of the optimum.
CLOSE = (0.1, 0.01)
METRICS = {
    "primal": "Consensus distance, of ||Mbar||",
    "change": "Change of Mbar in a round, of ||Mbar||",
    "excess": "Robust risk above its optimum",
}


@dataclass(frozen=True)
class Line:
    """A method of the figure: made for a budget of the whole run and a number of rounds."""

    name: str
    title: str
    make: Callable[[Privacy, int], Algorithm]
    norm: str = "l1"

    @property
    def robust(self) -> Robust:
        """The robust problem that it solves."""
        return Robust(RADIUS, LABEL_COST, self.norm)


def _exact(**settings: Any) -> Callable[[Privacy, int], Algorithm]:
    return lambda privacy, rounds: DroAdmm(radius=RADIUS, label_cost=LABEL_COST, norm="l1", tolerance=0.0, **settings)


def _private(variant: str, norm: str) -> Callable[[Privacy, int], Algorithm]:
    return lambda privacy, rounds: DpDroAdmm.calibrated(
        privacy, rounds, variant=variant, norm=norm, radius=RADIUS, label_cost=LABEL_COST
    )


LINES = (
    Line("exact", "Fed DRO, exact, balanced rho", _exact()),
    Line("exact-paper", "Fed DRO, exact, rho = 0.8", _exact(rho=0.8, balancing=0)),
    Line("default", "DP-Fed DRO, default", _private("default", "l1")),
    Line("paper-l1", "DP-Fed DRO, paper, l1", _private("paper", "l1")),
    Line("paper-linf", "DP-Fed DRO, paper, linf", _private("paper", "linf"), "linf"),
)


def main(out: Path, *, fast: bool = False, quiet: bool = False) -> pd.DataFrame:
    """Write convergence.csv, optimum.csv, the figure and the page to `out`; returns the numbers by round.

    convergence: method, seed, round, metric, value. Metrics: primal, mean_g ||M_g - Mbar||_F / ||Mbar||_F; change,
    ||Mbar - Mbar of the round before||_F / ||Mbar||_F; excess, mean_g F_g(M) minus its minimum over M, at the result M
    of the method; accuracy on the test rows. Raises CheckpointMismatch, see `dro_cells.finished`.
    """
    rounds, seeds = (FAST_ROUNDS, SEEDS[:FAST_SEEDS]) if fast else (ROUNDS, SEEDS)
    return run(setting(EPSILON, DELTA, rounds), LINES, seeds, out, fast=fast, quiet=quiet)


def run(
    column: Setting, shown: Sequence[Line], seeds: Sequence[int], out: Path, *, fast: bool = False, quiet: bool = False
) -> pd.DataFrame:
    """`main` for these data, methods and seeds."""
    rounds = column.rounds
    problems = functools.cache(lambda: column.problems(seeds, 2))
    common = {"table": column.table, "scaling": column.scaling, "flipped": FLIPPED, "seeds": list(seeds)}
    parts = []
    for robust in dict.fromkeys(line.robust for line in shown):
        make = functools.partial(_optima, problems, robust)
        described = common | {"robust": robust._asdict()}
        parts.append(Part(f"optimum-{robust.norm}", described, make, {"values": (len(seeds),)}))
    for line in shown:
        algorithm = line.make(column.privacy, rounds)
        shapes = {
            name: (len(seeds), rounds + (name in ("risk", "accuracy")))
            for name in ("primal", "change", "risk", "accuracy")
        }
        make = functools.partial(_measured, problems, line, algorithm, rounds)
        parts.append(Part(line.name, common | {"rounds": rounds, "method": algorithm.settings()}, make, shapes))
    cells = finished(out, parts, quiet=quiet)
    best = {line.robust.norm: np.asarray(cells[f"optimum-{line.robust.norm}"]["values"]) for line in shown}
    values = {line.name: _values(cells[line.name], best[line.robust.norm]) for line in shown}
    optima = pd.DataFrame({"seed": list(seeds)} | best)
    section = Section(
        NAME,
        EXPERIMENTS[NAME].title,
        text(column, len(seeds)),
        command(NAME, fast),
        tables={"Where it ends and how fast, mean ± half of the 95 % interval over seeds": table(shown, values, best)},
        plots=[plot(shown, values)],
        data={"convergence": (frame := _frame(shown, values, seeds)), "optimum": optima},
    )
    write_section(out, section)
    if not quiet:
        print(in_terminal(section))
    return frame


def _optima(problems: Callable[[], dict[int, Problem]], robust: Robust) -> dict[str, Any]:
    return {"values": [optimum(problem.whole.clients, robust)[0] for problem in problems().values()]}


def _measured(
    problems: Callable[[], dict[int, Problem]], line: Line, algorithm: Algorithm, rounds: int
) -> dict[str, Any]:
    """The metrics of one method by seed and round; the robust risk in place of its excess."""
    jobs = [Job(algorithm, problem.whole.clients, seed) for seed, problem in problems().items()]
    traces = recorded(jobs, rounds)
    found: dict[str, Any] = {name: [] for name in ("primal", "change", "risk", "accuracy")}
    for trace, problem in zip(traces, problems().values(), strict=True):
        found["primal"].append(consensus_distance(trace))
        found["change"].append(change(trace))
        found["risk"].append([mixture_risk(model, problem.whole.clients, line.robust) for model in trace.result])
        found["accuracy"].append([score(model, problem.whole, accuracy) for model in trace.result])
    return {name: np.asarray(rows) for name, rows in found.items()}


def consensus_distance(trace: Trace) -> Floats:
    """mean_g ||M_g - Mbar||_F / ||Mbar||_F after rounds 1..T."""
    assert trace.models is not None
    apart = np.linalg.norm(trace.models - trace.center[:, None], axis=(2, 3)).mean(axis=1)
    return np.asarray(apart[1:] / np.linalg.norm(trace.center[1:], axis=(1, 2)))


def change(trace: Trace) -> Floats:
    """||Mbar - Mbar of the round before||_F / ||Mbar||_F after rounds 1..T."""
    moved = np.linalg.norm(np.diff(trace.center, axis=0), axis=(1, 2))
    return np.asarray(moved / np.linalg.norm(trace.center[1:], axis=(1, 2)))


def _values(cell: Cell, best: Floats) -> dict[str, Floats]:
    """The metrics after rounds 1..T, [T, seeds]."""
    risk, right = (np.asarray(cell[name])[:, 1:] for name in ("risk", "accuracy"))
    found = {name: np.asarray(cell[name]).T for name in ("primal", "change")}
    return found | {"excess": (risk - best[:, None]).T, "accuracy": right.T}


def _frame(shown: Sequence[Line], values: Mapping[str, Mapping[str, Floats]], seeds: Sequence[int]) -> pd.DataFrame:
    parts = []
    for line in shown:
        for metric, table in values[line.name].items():
            part = pd.DataFrame(table, index=np.arange(1, len(table) + 1), columns=list(seeds))
            long = part.rename_axis("round").reset_index().melt("round", var_name="seed")
            parts.append(long.assign(method=line.name, metric=metric))
    return pd.concat(parts)[["method", "seed", "round", "metric", "value"]]


def table(shown: Sequence[Line], values: Mapping[str, Mapping[str, Floats]], best: Mapping[str, Floats]) -> Table:
    """Last values, and rounds until the excess is small and the accuracy near its peak."""
    head = ["method", "excess, % of the optimum", "consensus distance", "change of Mbar", "accuracy"]
    head += [f"rounds to {100 * close:g} % excess" for close in CLOSE] + ["rounds to 95 % of peak accuracy"]
    rows = []
    for line in shown:
        own, low = values[line.name], best[line.robust.norm]
        relative = own["excess"] / low
        cells = [with_interval(100 * relative[-1], 2), *[with_interval(own[m][-1], 4) for m in ("primal", "change")]]
        cells += [with_interval(own["accuracy"][-1]), *[_rounds_below(relative, close) for close in CLOSE]]
        peaks = [rounds_to_share(curve) + 1 for curve in own["accuracy"].T]
        rows.append([line.title, *cells, with_interval(peaks, 1)])
    return Table(head, rows)


def _rounds_below(relative: Floats, close: float) -> str:
    """Rounds after which a curve [T, seeds] is at most `close` for the first time, of the seeds where it ever is."""
    reached = np.asarray(np.any(relative <= close, axis=0))
    if not reached.any():
        return "never"
    first = np.argmax(relative <= close, axis=0)[reached] + 1
    share = "" if reached.all() else f" ({reached.sum()} of {len(reached)} seeds)"
    return (with_interval(first, 1) if len(first) > 1 else f"{first[0]}") + share


def text(column: Setting, seeds: int) -> list[str]:
    """What is measured, and on what."""
    privacy = column.privacy
    return [
        f"The simulated pump by protocol 7.1, {column.rounds} rounds, four clients, radius {RADIUS:g}, label cost "
        f"{LABEL_COST:g}; mean over {seeds} seeds with 95 % intervals. Private methods: epsilon = "
        f"{privacy.epsilon:.3f} at delta = {privacy.delta:g} for the whole run, exactly, the paper's "
        f"{column.per_round:g} a round; default steps (16, and 1 in the paper's variant), nothing searched.",
        "The paper's own metric of convergence is not known to us. Shown are the mean distance of the clients' models "
        "from Mbar and the change of Mbar in a round, both relative to the norm of Mbar, and what counts: the mean "
        "over clients of the worst-case risk at the result, above its minimum by a linear programme over the rows of "
        "all clients, for the norm that the method is made for. The two exact lines differ in rho alone: 0.1 with "
        "residual balancing, or the paper's 0.8 for good. The default's result is the mean of its last quarter of "
        "rounds.",
    ]


def plot(shown: Sequence[Line], values: Mapping[str, Mapping[str, Floats]]) -> Plot:
    """Three panels by round, each on a logarithmic axis."""
    styles = looks([line.title for line in shown])
    rounds = np.arange(1, len(values[shown[0].name]["excess"]) + 1)
    with settings():
        room = {"left": 0.62, "right": 0.12, "top": 0.38, "bottom": 0.55 + below_legend(list(styles)), "gap": 0.65}
        made, panels = figure([1.8] * len(METRICS), **room)
        for axes, (metric, title) in zip(panels, METRICS.items(), strict=True):
            curves = {line.title: values[line.name][metric] for line in shown}
            lines(axes, rounds.tolist(), curves, styles, points=False)
            logarithmic(axes, np.concatenate([interval(curve)[0] for curve in curves.values()]))
            axes.set_xlim(1, rounds[-1])
            headline(axes, title)
        panels[-1].set_xlabel("round")
        legend(made, styles)
    said = "; ".join(f"{line.title} {values[line.name]['excess'][-1].mean():.3g}" for line in shown)
    return Plot(NAME, f"Excess after {rounds[-1]} rounds: {said}.", "Bands: 95 % intervals. Logarithmic axes.", made)

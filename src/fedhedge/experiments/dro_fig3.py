"""Time to peak accuracy against the number of clients and of classes, on synthetic Gaussian classes."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from fedhedge.algorithms import Algorithm, DpDroAdmm, DroAdmm
from fedhedge.evaluation.columns import MISSING, as_percent
from fedhedge.experiments.dro_cells import Part, command, finished
from fedhedge.experiments.dro_fig1 import DELTA, setting
from fedhedge.experiments.dro_plots import below_legend, legend, log_ticks, with_interval
from fedhedge.experiments.dro_recorded import recorded, rounds_to_share
from fedhedge.experiments.dro_synthetic import Spread
from fedhedge.experiments.registry import EXPERIMENTS
from fedhedge.experiments.selection import Job, accuracy, prepared, score
from fedhedge.experiments.tables_data import Floats
from fedhedge.report.layout import figure, headline
from fedhedge.report.plot import Plot
from fedhedge.report.section import Section, in_terminal, write_section
from fedhedge.report.style import looks, settings
from fedhedge.report.tables import Table
from fedhedge.simulation.arithmetic import arithmetic
from fedhedge.simulation.driver import Simulation

NAME = "dro-fig3"
CLIENTS, CLASSES = (2, 4, 8, 16), (2, 4, 8, 12)
EACH, ALL = 100, 1600
OF_CLASSES = 4
SHARE = 0.95
# Of each round, by the paper's formula.
EPSILON = 0.5
REPEATS = 5
PRIVATE_ROUNDS, EXACT_ROUNDS = 150, 20


def _private() -> Algorithm:
    return DpDroAdmm.calibrated(setting(EPSILON, DELTA, PRIVATE_ROUNDS).privacy, PRIVATE_ROUNDS)


def _paper() -> Algorithm:
    budget = setting(EPSILON, DELTA, PRIVATE_ROUNDS).privacy
    return DpDroAdmm.calibrated(budget, PRIVATE_ROUNDS, variant="paper", norm="linf", radius=0.01)


def _exact() -> Algorithm:
    return DroAdmm(radius=0.01, norm="l1", tolerance=0.0)


@dataclass(frozen=True)
class Method:
    """A method, and the rounds of its runs."""

    name: str
    title: str
    make: Callable[[], Algorithm]
    rounds: int


METHODS = (
    Method("dp-dro", "DP-Fed DRO, default", _private, PRIVATE_ROUNDS),
    Method("dp-dro-paper", "DP-Fed DRO, paper, linf", _paper, PRIVATE_ROUNDS),
    Method("dro", "Fed DRO, exact", _exact, EXACT_ROUNDS),
)


@dataclass(frozen=True)
class Regime:
    """One way of growing: problems along the number of clients or of classes."""

    name: str
    title: str
    parameter: str
    problems: tuple[Spread, ...]

    @property
    def x(self) -> list[int]:
        """The numbers along the axis."""
        return [int(getattr(problem, self.parameter)) for problem in self.problems]


def regimes(clients: Sequence[int], classes: Sequence[int]) -> tuple[Regime, ...]:
    """More clients of 100 rows each, more clients that share 1,600 rows, and more classes with 4 clients."""
    return (
        Regime("each", f"{EACH} rows each", "clients", tuple(Spread(g, EACH, 4) for g in clients)),
        Regime("all", f"{ALL:,} rows in all", "clients", tuple(Spread(g, ALL // g, 4) for g in clients)),
        Regime("classes", "", "classes", tuple(Spread(OF_CLASSES, EACH, k) for k in classes)),
    )


def main(out: Path, *, fast: bool = False, quiet: bool = False) -> pd.DataFrame:
    """Write times.csv, accuracy.csv, the figures and the page to `out`; returns the times.

    times: regime, x, method, seconds and cpu (of a run, medians of repeats), rounds (of a run), to_peak (rounds to
    95 % of the peak accuracy, mean over seeds), peak, seconds_to_peak. accuracy: regime, x, method, seed, round, value.
    Raises CheckpointMismatch, see `dro_cells.finished`.
    """
    shown = regimes(CLIENTS[:3], CLASSES[:2]) if fast else regimes(CLIENTS, CLASSES)
    return run(shown, METHODS, range(2 if fast else 5), out, fast=fast, quiet=quiet)


def run(
    shown: Sequence[Regime],
    methods: Sequence[Method],
    seeds: Sequence[int],
    out: Path,
    *,
    fast: bool = False,
    quiet: bool = False,
) -> pd.DataFrame:
    """`main` for these regimes, methods and seeds."""
    problems = dict.fromkeys(problem for regime in shown for problem in regime.problems)
    parts = [_part(problem, method, seeds) for problem in problems for method in methods]
    cells = finished(out, parts, quiet=quiet)
    rows, curves = [], []
    for regime in shown:
        for x, problem in zip(regime.x, regime.problems, strict=True):
            for method in methods:
                cell = cells[_name(problem, method)]
                right = np.asarray(cell["accuracy"])
                rows.append((regime.name, x, method.name, *_times(cell, right, method.rounds)))
                curve = pd.DataFrame(right, index=list(seeds)).rename_axis("seed").reset_index()
                long = curve.melt("seed", var_name="round").assign(regime=regime.name, x=x, method=method.name)
                curves.append(long[["regime", "x", "method", "seed", "round", "value"]])
    names = ["regime", "x", "method", "seconds", "cpu", "rounds", "to_peak", "peak", "seconds_to_peak"]
    times = pd.DataFrame(rows, columns=names)
    section = Section(
        NAME,
        EXPERIMENTS[NAME].title,
        text(methods, len(seeds)),
        command(NAME, fast),
        tables={
            "Times, medians of repeats": table(shown, methods, times, cells),
            "How they grow": fits(shown, methods, times),
        },
        plots=[
            plot(parameter, [regime for regime in shown if regime.parameter == parameter], methods, times)
            for parameter in dict.fromkeys(regime.parameter for regime in shown)
        ],
        data={"times": times, "accuracy": pd.concat(curves)},
    )
    write_section(out, section)
    if not quiet:
        print(in_terminal(section))
    return times


def _name(problem: Spread, method: Method) -> str:
    return f"{method.name}-{problem.clients}-clients-{problem.rows}-rows-{problem.classes}-classes"


def _part(problem: Spread, method: Method, seeds: Sequence[int]) -> Part:
    algorithm = method.make()
    described = asdict(problem) | {"seeds": list(seeds), "rounds": method.rounds, "repeats": REPEATS}
    shapes = {"seconds": (REPEATS,), "cpu": (REPEATS,), "accuracy": (len(seeds), method.rounds + 1)}
    make = functools.partial(_measured, problem, algorithm, method.rounds, seeds)
    return Part(_name(problem, method), described | {"method": algorithm.settings()}, make, shapes)


def _measured(problem: Spread, algorithm: Algorithm, rounds: int, seeds: Sequence[int]) -> dict[str, Any]:
    """Accuracy on test rows by seed and round, and the times of whole runs of the first seed, warm."""
    splits = [problem.split(seed) for seed in seeds]
    traces = recorded([Job(algorithm, split.clients, seed) for split, seed in zip(splits, seeds, strict=True)], rounds)
    right = [
        [score(model, split, accuracy) for model in trace.result] for trace, split in zip(traces, splits, strict=True)
    ]
    job = Job(algorithm, splits[0].clients, seeds[0])
    # The first run compiles and is not counted.
    seconds, cpu = zip(*[timed(job, rounds) for _ in range(REPEATS + 1)][1:], strict=True)
    return {"seconds": list(seconds), "cpu": list(cpu), "accuracy": right}


def timed(job: Job, rounds: int) -> tuple[float, float]:
    """Seconds on the clock and of the processor that a run without any evaluation takes, from its first round on."""
    run = prepared(job, rounds, every=rounds, kind=Simulation)
    with arithmetic(job.algorithm.precision):
        clock, cpu = time.perf_counter(), time.process_time()
        run.run(None, resume=False, progress=False)
        return time.perf_counter() - clock, time.process_time() - cpu


def _times(cell: Mapping[str, Any], right: Floats, rounds: int) -> tuple[float, ...]:
    seconds, cpu = (statistics.median(cell[name]) for name in ("seconds", "cpu"))
    to_peak = float(np.mean([rounds_to_share(curve, SHARE) for curve in right]))
    return seconds, cpu, rounds, to_peak, float(right.max(axis=1).mean()), seconds * to_peak / rounds


def text(methods: Sequence[Method], seeds: int) -> list[str]:
    """What is timed, and on what."""
    budget = setting(EPSILON, DELTA, PRIVATE_ROUNDS).privacy
    runs = " and ".join(f"{method.rounds} rounds of {method.title}" for method in methods)
    return [
        "Synthetic Gaussian classes: means random on the unit sphere of ten dimensions, standard deviation 0.35 in "
        "each feature, a tenth of the labels wrong, 70 % of a client's rows of one class and the others alike. Runs "
        f"are {runs}, private ones at epsilon = {budget.epsilon:.3f} and delta = {budget.delta:g} for the whole run, "
        f"exactly. Accuracy on test rows by round, {seeds} seeds.",
        f"Times are medians of {REPEATS} whole runs of one seed after one that is not counted, so that nothing is "
        "compiled in them; no evaluation is in them. All clients are computed one after another in one process, so "
        "that these are times of a simulation: at real sites clients work at the same time. Seconds on the clock "
        "depend on what else the machine does; processor seconds hardly do. The time to peak is the time of a run "
        f"times the share of its rounds until accuracy is at {100 * SHARE:g} % of its peak.",
        "How they grow: the power p of time = c x^p by least squares on logarithms, with half of its 95 % interval "
        "where there are more than two points, over the same problems as above; the share of the variance of "
        "processor time that a straight line in x explains; rounds to the peak at the smallest and the largest x.",
    ]


def exponent(x: ArrayLike, y: ArrayLike) -> tuple[float, float]:
    """Slope of log y against log x by least squares, and half of its 95 % interval; 1 is linear growth."""
    found = stats.linregress(np.log(x), np.log(y))
    half = float(stats.t.ppf(0.975, np.size(x) - 2) * found.stderr) if np.size(x) > 2 else float("nan")
    return float(found.slope), half


def fits(shown: Sequence[Regime], methods: Sequence[Method], times: pd.DataFrame) -> Table:
    """How times grow: exponents with intervals, how well a straight line does, and rounds to the peak at both ends."""
    head = [
        "method",
        "against",
        "power of\nprocessor time",
        "power of time\non the clock",
        "straight line\n% explained",
    ]
    rows = []
    for regime in shown:
        what = ", ".join(filter(None, [regime.parameter, regime.title]))
        for method in methods:
            part = times[(times["regime"] == regime.name) & (times["method"] == method.name)]
            many = len(part) > 2
            grown = []
            for name in ("cpu", "seconds"):
                slope, half = exponent(part["x"].to_numpy(), part[name].to_numpy())
                grown.append(f"{slope:.2f}{f' ± {half:.2f}' if many else ''}".replace("-", "−"))
            # Two points are always on a line.
            straight = as_percent(stats.linregress(part["x"], part["cpu"]).rvalue ** 2) if many else MISSING
            peaks = f"{part['to_peak'].iloc[0]:.1f} to {part['to_peak'].iloc[-1]:.1f}"
            rows.append([method.title, what, *grown, straight, peaks])
    return Table([*head, f"rounds to {100 * SHARE:g} %\nof the peak"], rows)


def table(
    shown: Sequence[Regime], methods: Sequence[Method], times: pd.DataFrame, cells: Mapping[str, Mapping[str, Any]]
) -> Table:
    """All times, with intervals over seeds of what depends on the seed."""
    head = ["problem", "method", "ms a round", "processor ms a round", "rounds to peak", "peak accuracy", "s to peak"]
    rows = []
    for regime in shown:
        for x, problem in zip(regime.x, regime.problems, strict=True):
            for method in methods:
                at = (times["regime"] == regime.name) & (times["x"] == x) & (times["method"] == method.name)
                line = times[at].iloc[0]
                right = np.asarray(cells[_name(problem, method)]["accuracy"])
                what = ", ".join(filter(None, [f"{x} {regime.parameter}", regime.title]))
                numbers = [f"{1000 * line[name] / method.rounds:.3g}" for name in ("seconds", "cpu")]
                first = [rounds_to_share(curve, SHARE) for curve in right]
                peaks = [with_interval(first, 1), with_interval(right.max(axis=1))]
                rows.append([what, method.title, *numbers, *peaks, f"{line['seconds_to_peak']:.3g}"])
    return Table(head, rows)


def plot(name: str, shown: Sequence[Regime], methods: Sequence[Method], times: pd.DataFrame) -> Plot:
    """Time of a round, rounds to the peak, and their product, along the clients or the classes."""
    panels = {
        "cpu": "Processor seconds of a round",
        "to_peak": f"Rounds to {100 * SHARE:g} % of the peak accuracy",
        "seconds_to_peak": f"Seconds to {100 * SHARE:g} % of the peak accuracy",
    }
    pairs = [(regime, method) for regime in shown for method in methods]
    labels = [", ".join(filter(None, [method.title, regime.title])) for regime, method in pairs]
    styles = looks(labels)
    with settings():
        room = {"left": 0.62, "right": 0.12, "top": 0.38, "bottom": 0.55 + below_legend(labels), "gap": 0.65}
        made, drawn = figure([1.5] * len(panels), **room)
        for axes, (column, title) in zip(drawn, panels.items(), strict=True):
            for (regime, method), label in zip(pairs, labels, strict=True):
                part = times[(times["regime"] == regime.name) & (times["method"] == method.name)]
                values = part[column] / (part["rounds"] if column == "cpu" else 1)
                look = styles[label]
                axes.plot(part["x"], values, "o", color=look.colour, linestyle=look.dash, markersize=3.5)
            log_ticks(axes, shown[0].x)
            if column != "to_peak":
                axes.set_yscale("log")
                axes.yaxis.set_major_formatter("{x:g}")
            else:
                axes.set_ylim(bottom=0)
            headline(axes, title)
        drawn[-1].set_xlabel(f"number of {shown[0].parameter}")
        legend(made, styles)
    ends = times[times["regime"] == shown[0].name].groupby("method", sort=False)["seconds_to_peak"].last()
    said = ", ".join(f"{method} {value:.3g} s" for method, value in ends.items())
    return Plot(f"{NAME}-{name}", f"To 95 % of the peak at the largest number: {said}.", "Times: medians.", made)

"""How the time of the exact client solver grows with N, P and K, with a figure, against CVXPY where it finishes.

    make bench BENCH=dro_growth

One of N, P and K grows at a time, the others stay at 400, 13 and 4. Norms l1 and linf; CVXPY for l1 alone. Each size
runs in a process of its own with a limit, and a solver that has exceeded it is not asked for larger ones. Medians of
processor time; see dro_solver.py for cold, warm, and what CVXPY does.
"""

from __future__ import annotations

import multiprocessing
import statistics
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from dro_solver import SIZE, Size, admm, client_rows, solve_with_cvxpy, timed
from matplotlib.lines import Line2D
from results import Results, digits, options

from fedhedge.report import style
from fedhedge.report.layout import figure, headline, logarithmic
from fedhedge.report.plot import Plot

AXES = {"N": (400, 1600, 6400, 20000), "P": (13, 50, 100, 200), "K": (4, 8, 12, 20)}
NAMES = {"N": "rows N", "P": "features P", "K": "classes K"}
QUICK = {"N": (400, 800), "P": (13,), "K": (4,)}
ROUNDS = 10
LIMIT = 60.0
SOLVERS = ("CVXPY", "linf cold", "linf warm", "l1 cold", "l1 warm")

Series = dict[str, dict[str, list[tuple[int, float]]]]


def ours(size: Size, norm: str, rounds: int) -> tuple[float, float]:
    """Milliseconds of a cold and of a warm solve."""
    times = admm(size, norm, rounds, 0)
    return 1e3 * statistics.median(times.cold), 1e3 * statistics.median(times.warm)


def theirs(size: Size, norm: str) -> float:
    """Milliseconds of one solve by CVXPY of the first client's first problem."""
    X, y = client_rows(0, *size)
    center = np.zeros((size[2], size[1]))
    return 1e3 * timed(lambda: solve_with_cvxpy(X, y, norm, center))[0]


def _answer(to: Connection, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    to.send(work(*arguments))


def within(limit: float, work: Callable[..., Any], *arguments: Any) -> Any:
    """What the work returns, or None where it takes longer than the limit in seconds or fails."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_answer, args=(there, work, arguments))
    process.start()
    there.close()
    try:
        return here.recv() if here.poll(limit) else None
    except EOFError:
        return None
    finally:
        process.kill()
        process.join()


def grown(letter: str, value: int) -> Size:
    rows, features, classes = (value if name == letter else base for name, base in zip("NPK", SIZE, strict=True))
    return rows, features, classes


def measure(axes: dict[str, tuple[int, ...]], results: Results) -> Series:
    found: Series = {letter: {solver: [] for solver in SOLVERS} for letter in axes}
    for letter, values in axes.items():
        alive = {"l1": True, "linf": True, "CVXPY": True}
        for value in values:
            size = grown(letter, value)
            label = f"{letter} = {value:,}"
            for norm in ("l1", "linf"):
                if not alive[norm]:
                    continue
                pair = within(LIMIT, ours, size, norm, ROUNDS)
                alive[norm] = pair is not None
                for kind, milliseconds in zip(("cold", "warm"), pair or (), strict=False):
                    results.add(f"{label}, {norm} {kind}", milliseconds, "ms")
                    found[letter][f"{norm} {kind}"].append((value, milliseconds))
                if pair is None:
                    results.remark(f"{label}, {norm}: the solves of {ROUNDS} rounds did not end in {LIMIT:g} s.")
            if not alive["CVXPY"]:
                continue
            milliseconds = within(LIMIT, theirs, size, "l1")
            alive["CVXPY"] = milliseconds is not None
            if milliseconds is None:
                results.remark(f"{label}, l1: CVXPY did not end in {LIMIT:g} s.")
                continue
            results.add(f"{label}, l1 CVXPY with Clarabel, rebuilt", milliseconds, "ms")
            found[letter]["CVXPY"].append((value, milliseconds))
            last = found[letter]["l1 cold"]
            if last and last[-1][0] == value:
                results.add(f"{label}, l1 CVXPY / cold", milliseconds / last[-1][1], "×")
    return found


def plot(found: Series, axes: dict[str, tuple[int, ...]]) -> Plot:
    """Milliseconds of a solve by N, by P and by K, on logarithmic axes."""
    with style.settings():
        looks = style.looks(list(SOLVERS))
        legend = 0.19 * len(SOLVERS) + 0.15
        made, panels = figure([1.6] * len(found), left=0.62, right=0.25, top=0.38, bottom=0.5 + legend, gap=0.85)
        said = []
        everything = np.array([y for series in found.values() for points in series.values() for _, y in points])
        for panel, (letter, series) in zip(panels, found.items(), strict=True):
            values = axes[letter]
            panel.set_xscale("log")
            logarithmic(panel, everything)
            panel.minorticks_off()
            panel.set_xticks(values, [f"{value:,}" for value in values])
            drawn = {solver: points for solver, points in series.items() if points}
            for solver, points in drawn.items():
                x, y = zip(*points, strict=True)
                look = looks[solver]
                panel.plot(x, y, color=look.colour, linestyle=look.dash, marker="o", markersize=3, clip_on=False)
            panel.set_xlim(values[0] / 1.05, values[-1] * 1.05)
            headline(panel, f"Time of a solve by {NAMES[letter]}, ms")
            panel.set_xlabel(NAMES[letter])
            last = [f"{solver} {digits(points[-1][1])} ms at {points[-1][0]:,}" for solver, points in drawn.items()]
            said.append(f"{NAMES[letter]}: {', '.join(last)}")
        handles = [Line2D([], [], color=look.colour, linestyle=look.dash) for look in looks.values()]
        made.legend(handles, list(looks), loc="lower left", bbox_to_anchor=(0.0, 0.0), borderaxespad=0.2)
        caption = (
            "The others stay at N = 400, P = 13, K = 4. CVXPY: problem of norm l1 built anew and solved by Clarabel. "
            f"Lines end where a solver took more than {LIMIT:g} s. Logarithmic axes."
        )
        return Plot("dro-growth", f"Time of a solve. {'; '.join(said)}.", caption, made)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--plots", type=Path, metavar="DIR", help="write the figure there, as PNG and SVG")
    given = parser.parse_args()
    results = Results.of("The exact client solver as N, P and K grow", given)
    axes = QUICK if given.quick else AXES
    found = measure(axes, results)
    if given.plots is not None:
        plot(found, axes).write(given.plots)
    results.write()


if __name__ == "__main__":
    main()

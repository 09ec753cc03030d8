"""Lines with 95 % intervals against a number, and intervals as text: what the second paper's figures share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy import stats

from fedhedge.evaluation import paired_t
from fedhedge.experiments.tables_data import Floats
from fedhedge.report.style import Look

LEGEND_LINE = 0.19
# Between points that belong to one place of the axis, of its length.
APART = 0.013


def interval(values: Any) -> tuple[Floats, Floats]:
    """Mean over the last axis and the half width of its 95 % interval by Student's t; nan for one value."""
    array = np.asarray(values, np.float64)
    count = array.shape[-1]
    if count < 2:
        return array.mean(axis=-1), np.full(array.shape[:-1], np.nan)
    factor = stats.t.ppf(0.975, count - 1) / count**0.5
    return array.mean(axis=-1), factor * array.std(axis=-1, ddof=1)


def with_interval(values: Any, digits: int = 3) -> str:
    """mean +- half of the 95 % interval, as text."""
    mean, half = interval(values)
    return f"{mean:.{digits}f} ± {half:.{digits}f}"


def difference(ours: Any, theirs: Any, digits: int = 3) -> str:
    """Mean of the paired differences with their 95 % interval, as text."""
    found = paired_t(ours, theirs)
    numbers = (f"{value:+.{digits}f}".replace("-", "−") for value in (found.difference, found.low, found.high))
    return "{} ({} to {})".format(*numbers)


def lines(axes: Axes, x: Sequence[float], data: Mapping[str, Any], looks: Mapping[str, Look], *, points: bool) -> None:
    """Mean of values [len(x), seeds] against x with its 95 % interval.

    points: dots with bars, those of each line moved a little sideways (on the scale that the axis has already), instead
    of a band.
    """
    scale = axes.xaxis.get_transform()
    places = scale.transform(np.asarray(x, np.float64))
    for number, (label, values) in enumerate(data.items()):
        look = looks[label]
        mean, half = interval(values)
        if points:
            aside = APART * (number - (len(data) - 1) / 2) * (places.max() - places.min())
            moved = scale.inverted().transform(places + aside)
            axes.plot(moved, mean, "o", color=look.colour, linestyle=look.dash, markersize=3.0, linewidth=1.3)
            axes.vlines(moved, mean - half, mean + half, color=look.colour, linewidth=1.0)
        else:
            axes.plot(x, mean, color=look.colour, linestyle=look.dash)
            axes.fill_between(x, mean - half, mean + half, color=look.colour, alpha=0.16, linewidth=0)


def log_ticks(axes: Axes, x: Iterable[float], shown: str = "{:g}") -> None:
    """A logarithmic horizontal axis with these numbers as its only ticks."""
    axes.set_xscale("log")
    ticks = list(x)
    axes.set_xticks(ticks, [shown.format(tick) for tick in ticks])
    axes.minorticks_off()


def below_legend(labels: Sequence[str]) -> float:
    """Inches that a legend of these labels needs below the axes."""
    return LEGEND_LINE * len(labels) + 0.1


def legend(made: Figure, looks: Mapping[str, Look]) -> None:
    """All labels with their looks at the foot of the figure."""
    handles = [Line2D([], [], color=look.colour, linestyle=look.dash) for look in looks.values()]
    made.legend(handles, list(looks), loc="lower left", bbox_to_anchor=(0.0, 0.0), borderaxespad=0.2)

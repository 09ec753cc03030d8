"""Axes placed in inches, and labels that keep out of each other's way."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from fedhedge.report.style import FONT, WIDTH, Look

_LETTER = 0.6 * FONT / 72
_LONGEST_DIRECT = 12
_MOST_DIRECT = 8
_LONGEST_LINE = 50
_EDGE = 0.06
# Beyond this ratio of the largest to the smallest loss the axis is logarithmic.
_FLATTENING = 100.0


def figure(
    rows: Sequence[float], *, left: float, right: float, top: float, bottom: float, gap: float
) -> tuple[Figure, list[Axes]]:
    """A figure of the common width with one axes for each height in `rows`; all measures in inches."""
    height = top + sum(rows) + gap * (len(rows) - 1) + bottom
    made = Figure(figsize=(WIDTH, height))
    axes = []
    at = height - top
    for row in rows:
        at -= row
        axes.append(made.add_axes((left / WIDTH, at / height, (WIDTH - left - right) / WIDTH, row / height)))
        at -= gap
    return made, axes


def headline(axes: Axes, text: str) -> None:
    """A title over an axes that begins at the left edge of the figure; it says what the vertical axis is."""
    left, width = axes.bbox.x0 / axes.figure.dpi, axes.bbox.width / axes.figure.dpi
    axes.set_title(text, x=(_EDGE - left) / width)


def fit_beside(labels: Sequence[str]) -> bool:
    """Whether labels are few and short enough to stand beside the ends of their lines."""
    return len(labels) <= _MOST_DIRECT and max(map(len, labels)) <= _LONGEST_DIRECT


def room_beside(labels: Sequence[str]) -> float:
    """Inches that labels need on the right of an axes."""
    return 0.32 + _LETTER * max(map(len, labels))


def label_ends(axes: Axes, ends: Mapping[str, tuple[float, float]], looks: Mapping[str, Look]) -> None:
    """Write each label beside the end (x, y) of its line, moved apart where they would overlap, with a leader to it."""
    labels = sorted(ends, key=lambda label: ends[label][1])
    dots = axes.figure.dpi
    # In units of the scale, so that distances are what the eye sees on a logarithmic axis too.
    scale = axes.yaxis.get_transform()
    low, high = scale.transform(np.asarray(axes.get_ylim()))
    gap = (high - low) * 1.25 * FONT / 72 / (axes.bbox.height / dots)
    wanted = scale.transform(np.asarray([ends[label][1] for label in labels]))
    heights = scale.inverted().transform(np.asarray(spaced(wanted.tolist(), gap, low, high)))
    right = axes.get_xlim()[1]
    inch = (right - axes.get_xlim()[0]) / (axes.bbox.width / dots)
    for label, height in zip(labels, heights, strict=True):
        x, y = ends[label]
        look = looks[label]
        path = ([x, right + 0.05 * inch, right + 0.2 * inch], [y, height, height])
        axes.add_line(Line2D(*path, color=look.colour, linewidth=1.0, clip_on=False))
        axes.text(right + 0.25 * inch, height, label, va="center", ha="left")


def spaced(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Ascending positions near the ascending ones wanted, at least `gap` apart, inside [low, high] where they fit."""
    placed = list(wanted)
    for i in range(1, len(placed)):
        placed[i] = max(placed[i], placed[i - 1] + gap)
    ceiling = high
    for i in reversed(range(len(placed))):
        placed[i] = min(placed[i], ceiling)
        ceiling = placed[i] - gap
    short = max(0.0, low - placed[0]) if placed else 0.0
    return [position + short for position in placed]


def spread_out(values: np.ndarray) -> bool:
    """Whether values range over so much that a linear axis would flatten most of them; not where one is negative."""
    known = values[np.isfinite(values)]
    positive = known[known > 0]
    return len(positive) > 0 and known.min() >= 0 and positive.max() / positive.min() > _FLATTENING


def logarithmic(axes: Axes, values: np.ndarray) -> None:
    """A logarithmic vertical axis round the positive ones of the values, with plain numbers at powers of ten."""
    positive = values[np.isfinite(values) & (values > 0)]
    axes.set_yscale("log", nonpositive="clip")
    axes.set_ylim(positive.min() / 1.6, positive.max() * 1.6)
    axes.yaxis.set_major_locator(LogLocator(numticks=5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def shortened(text: str) -> str:
    """The text, cut where the width of a figure ends."""
    return text if len(text) <= _LONGEST_LINE else f"{text[: _LONGEST_LINE - 1]}…"


def client_ticks(axes: Axes, order: np.ndarray, rare: Sequence[int]) -> None:
    """Number the clients below bars in `order`, as room allows: the rare ones first, then others evenly."""
    clients = len(order)
    stride = max(1, -(-clients // 12)) if clients > 15 else 1
    points = 72 * axes.bbox.width / axes.figure.dpi / clients
    apart = max(1, math.ceil(0.85 * FONT / points))
    chosen: list[int] = []
    for position in [*np.flatnonzero(np.isin(order, rare)).tolist(), *range(0, clients, stride)]:
        if all(abs(position - other) >= apart for other in chosen):
            chosen.append(position)
    axes.set_xticks(chosen, [str(order[position]) for position in chosen], rotation=90 if clients > 15 else 0)
    axes.set_xlim(-0.7, clients - 0.3)
    axes.tick_params(axis="x", length=0)

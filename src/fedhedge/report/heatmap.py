"""Numbers as shaded cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from fedhedge.report.style import FONT, INK, SERIES

# Opacity of the strongest cell: letters stay readable on it, on light and dark pages.
_STRONG = 0.6


def shade(
    axes: Axes,
    texts: Sequence[Sequence[str]],
    strength: ArrayLike,
    rows: Sequence[str],
    columns: Sequence[str],
) -> None:
    """Fill the axes with cells [R, C], the first row on top, each with its text and a colour as strong as told.

    strength: in [-1, 1]; negative ones get the second colour. rows, columns: names along the axes.
    """
    for (row, column), value in np.ndenumerate(np.clip(np.nan_to_num(np.asarray(strength, float)), -1.0, 1.0)):
        colour = SERIES[0] if value >= 0 else SERIES[1]
        axes.add_patch(Rectangle((column, row), 1, 1, facecolor=colour, alpha=_STRONG * abs(value), linewidth=0))
        axes.text(column + 0.5, row + 0.5, texts[row][column], ha="center", va="center", color=INK, fontsize=FONT - 1)
    axes.set(xlim=(0, len(columns)), ylim=(len(rows), 0))
    axes.set_xticks(np.arange(len(columns)) + 0.5, list(columns))
    axes.set_yticks(np.arange(len(rows)) + 0.5, list(rows))
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)

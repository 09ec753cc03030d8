"""How figures look: one set of colours, sizes and rules, kept apart from the reader's own matplotlib settings."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import matplotlib.style

INK = "#1b1c20"
MUTED = "#63656e"
GRID = "#dcdde2"
PAPER = "#ffffff"

# After Okabe and Ito's palette, darkened where 3:1 against white asks for it; the second list is for a dark page.
SERIES = (
    "#0072b2", "#d55e00", "#00916a", "#b3588e", "#8a6a00", "#4a4d57", "#7a3ff2", "#4b8500", "#8c1515", "#d6006c",
)  # fmt: skip
SERIES_ON_DARK = (
    "#58aee6", "#f08a4b", "#35cf9f", "#e6a3c9", "#d9b548", "#c4c7d0", "#a78bff", "#9bd13c", "#ff6b6b", "#ff5fae",
)  # fmt: skip
DASHES: tuple[Any, ...] = ("solid", (0, (5, 1.6)), (0, (1.4, 1.2)), (0, (5, 1.4, 1.2, 1.4)))

# Inches: about the width of a phone's page, so that letters keep their size there.
WIDTH = 4.2
FONT = 9.5

_SETTINGS = {
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": FONT,
    "text.color": INK,
    "text.parse_math": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": MUTED,
    "axes.titlecolor": INK,
    "axes.titlesize": FONT,
    "axes.titlelocation": "left",
    "axes.titlepad": 7.0,
    "axes.labelsize": FONT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": FONT - 0.5,
    "ytick.labelsize": FONT - 0.5,
    "ytick.major.size": 0.0,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "legend.fontsize": FONT,
    "figure.facecolor": PAPER,
    "axes.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "fedhedge",
}


def settings() -> AbstractContextManager[None]:
    """Matplotlib under our settings alone; the reader's own come back at the end."""
    context: AbstractContextManager[None] = matplotlib.style.context(["default", _SETTINGS])
    return context


@dataclass(frozen=True)
class Look:
    """Colour and dash pattern of a method, the same in all figures."""

    colour: str
    dash: Any


def looks(labels: list[str]) -> dict[str, Look]:
    """A look for each label: colours first, and other dashes for each, so that lines on top of each other both show."""
    return {
        label: Look(SERIES[i % len(SERIES)], DASHES[(i + i // len(SERIES)) % len(DASHES)])
        for i, label in enumerate(labels)
    }

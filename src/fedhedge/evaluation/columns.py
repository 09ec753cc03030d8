"""The columns of a comparison as they are shown: titles and formatted cells, for the terminal and the report."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pandas as pd

MISSING = "–"
Show = Callable[[float], str]


@dataclass(frozen=True)
class Column:
    """A column of a shown table: its name in the comparison, two lines of title, and a cell for each method.

    best: row numbers of the best values, by what is shown; empty where no direction is better.
    """

    key: str
    title: str
    unit: str
    cells: tuple[str, ...]
    best: tuple[int, ...] = ()


def columns(table: pd.DataFrame) -> list[Column]:
    """The columns of a `compare` table worth showing: those without content are left out."""
    metric = str(table["metric"].iloc[0])
    percent = metric == "accuracy"
    show = as_percent if percent else as_number
    unit = "%" if percent else ""
    tail = float(table["tail_mass"].iloc[0])

    def column(key: str, title: str, under: str, *, higher: bool = percent, show: Show = show) -> Column:
        return Column(key, title, under, tuple(map(show, table[key])), _best(table[key], show, higher))

    mean = column("mean", f"{metric} {unit}".strip(), "mean ± sd")
    cells = [with_sd(show, value, sd) for value, sd in zip(table["mean"], table["mean_sd"], strict=True)]
    shown = [
        replace(mean, cells=tuple(cells)),
        column("worst_client", "worst", "client"),
        column("rare", "rare", "mean"),
        column("client_sd", "sd over", "clients", higher=False),
        column("cvar", "CVaR", f"{100 * tail:.3g} %"),
        column("pooled", "pooled", "rows"),
    ]
    if metric != "loss":
        shown.append(column("loss", "loss", "mean", higher=False, show=as_number))
    if table["target"].notna().all():
        target = show(float(table["target"].iloc[0]))
        needed = column("rounds_to_target", "rounds to", f"{target} {unit}".strip(), higher=False, show=as_count)
        cells = [f"{rounds} ({count})" for rounds, count in zip(needed.cells, table["reached"], strict=True)]
        shown.append(replace(needed, cells=tuple(cells)))
    shown.append(column("uplink", "uplink", "each", higher=False, show=as_count))
    shown.append(column("uplink_per_round", "uplink", "a round", higher=False, show=as_count))
    if (table["weighting"] != "uniform").any():
        shown.append(Column("weighting", "weighted", "by", tuple(table["weighting"])))
    return [one for one in shown if any(cell != MISSING for cell in one.cells)]


def is_text(cells: Sequence[str]) -> bool:
    """Whether a column is one of words: a cell begins with a letter, and none as a number."""
    return any(cell[:1].isalpha() for cell in cells) and not any(re.match(r"\W*\d", cell) for cell in cells)


def as_percent(value: float) -> str:
    """A share in percent with one decimal."""
    return f"{100 * value:.1f}" if math.isfinite(value) else MISSING


def as_number(value: float) -> str:
    """A number with three digits."""
    return f"{value:#.3g}" if math.isfinite(value) else MISSING


def as_count(value: float) -> str:
    """A number of rounds or scalars, with thousands apart."""
    return f"{value:,.0f}" if math.isfinite(value) else MISSING


def with_sd(show: Show, mean: float, sd: float) -> str:
    """A mean with the standard deviation behind it, where there is one."""
    return f"{show(mean)} ± {show(sd)}" if math.isfinite(sd) else show(mean)


def _best(values: pd.Series, show: Show, higher: bool) -> tuple[int, ...]:
    """Rows that show the best value; none when all rows show the same."""
    known = values[values.map(math.isfinite)]
    if known.empty:
        return ()
    best = show(float(known.max() if higher else known.min()))
    rows = tuple(i for i, value in enumerate(values) if show(value) == best)
    return rows if len(rows) < len(values) else ()

"""The columns of a comparison as they are shown: titles and formatted cells, for the terminal and the report."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

MISSING = "–"


@dataclass(frozen=True)
class Column:
    """A column of a shown table: two lines of title, and a cell for each method.

    best: row numbers of the best values, by what is shown; empty where no direction is better.
    """

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

    def column(
        title: str, under: str, key: str, *, higher: bool = percent, show: Callable[[float], str] = show
    ) -> Column:
        return Column(title, under, tuple(map(show, table[key])), _best(table[key], show, higher))

    means = [with_sd(show, mean, sd) for mean, sd in zip(table["mean"], table["mean_sd"], strict=True)]
    shown = [
        Column(f"{metric} {unit}".strip(), "mean ± sd", tuple(means), _best(table["mean"], show, percent)),
        column("worst", "client", "worst_client"),
        column("rare", "mean", "rare"),
        column("sd over", "clients", "client_sd", higher=False),
        column("CVaR", f"{100 * tail:.3g} %", "cvar"),
        column("pooled", "rows", "pooled"),
    ]
    if metric != "loss":
        shown.append(column("loss", "mean", "loss", higher=False, show=as_number))
    if table["target"].notna().all():
        target = float(table["target"].iloc[0])
        rounds = [f"{as_count(r)} ({n})" for r, n in zip(table["rounds_to_target"], table["reached"], strict=True)]
        shown.append(
            Column(
                "rounds to",
                f"{show(target)} {unit}".strip(),
                tuple(rounds),
                _best(table["rounds_to_target"], as_count, False),
            )
        )
    shown.append(column("uplink", "each", "uplink", higher=False, show=as_count))
    shown.append(column("uplink", "a round", "uplink_per_round", higher=False, show=as_count))
    if (table["weighting"] != "uniform").any():
        shown.append(Column("weighted", "by", tuple(table["weighting"])))
    return [one for one in shown if any(cell != MISSING for cell in one.cells)]


def as_percent(value: float) -> str:
    """A share in percent with one decimal."""
    return f"{100 * value:.1f}" if math.isfinite(value) else MISSING


def as_number(value: float) -> str:
    """A number with three digits."""
    return f"{value:#.3g}" if math.isfinite(value) else MISSING


def as_count(value: float) -> str:
    """A number of rounds or scalars, with thousands apart."""
    return f"{value:,.0f}" if math.isfinite(value) else MISSING


def with_sd(show: Callable[[float], str], mean: float, sd: float) -> str:
    """A mean with the standard deviation behind it, where there is one."""
    return f"{show(mean)} ± {show(sd)}" if math.isfinite(sd) else show(mean)


def _best(values: pd.Series, show: Callable[[float], str], higher: bool) -> tuple[int, ...]:
    """Rows that show the best value; none when all rows show the same."""
    known = values[values.map(math.isfinite)]
    if known.empty:
        return ()
    best = show(float(known.max() if higher else known.min()))
    rows = tuple(i for i, value in enumerate(values) if show(value) == best)
    return rows if len(rows) < len(values) else ()

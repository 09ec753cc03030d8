"""The files of the comparison of methods: all scores, means with errors, paired differences, and a text."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fedhedge import files
from fedhedge.evaluation import paired_t
from fedhedge.experiments.dro_methods import Method
from fedhedge.privacy import gaussian_mu, moments_epsilon

if TYPE_CHECKING:
    from fedhedge.experiments.dro_table import Setting

OURS = "dp-dro"
Cells = Mapping[tuple[str, str], Mapping[str, Any]]


def write(
    out: Path, settings: Sequence[Setting], methods: Sequence[Method], cells: Cells, *, quiet: bool
) -> pd.DataFrame:
    """Write scores.csv, table.csv, differences.csv and table.txt; returns the table (and prints the text).

    table: setting, method, mean, error (standard error over seeds), seeds. differences: the default DP-Fed DRO minus
    each other private method, mean over seeds with its 95 % interval and p-value by Student's t.
    """
    scores, table, apart = _scores(cells), _table(settings, methods, cells), _differences(settings, methods, cells)
    text = _text(settings, methods, table, apart)
    for name, frame in (("scores", scores), ("table", table), ("differences", apart)):
        files.write_text(out / f"{name}.csv", frame.to_csv(index=False))
    files.write_text(out / "table.txt", text)
    if not quiet:
        print(text, end="")
    return table


def _scores(cells: Cells) -> pd.DataFrame:
    lines = []
    for (setting, method), cell in cells.items():
        described = cell["described"]
        for seed, value, chosen in zip(described["seeds"], cell["values"], cell["chosen"], strict=True):
            settings = described["candidates"][chosen]
            lines.append({"setting": setting, "method": method, "seed": seed, "value": value, "chosen": settings})
    return pd.DataFrame(lines)


def _table(settings: Sequence[Setting], methods: Sequence[Method], cells: Cells) -> pd.DataFrame:
    lines = []
    for setting in settings:
        for method in methods:
            values = np.asarray(cells[setting.name, method.name]["values"])
            error = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.nan
            lines.append((setting.name, setting.metric, method.name, values.mean(), error, len(values)))
    return pd.DataFrame(lines, columns=["setting", "metric", "method", "mean", "error", "seeds"])


def _differences(settings: Sequence[Setting], methods: Sequence[Method], cells: Cells) -> pd.DataFrame:
    lines = []
    others = [method.name for method in methods if method.private and method.name != OURS]
    for setting in settings:
        for other in others:
            ours, theirs = (cells[setting.name, name]["values"] for name in (OURS, other))
            lines.append((setting.name, other, *vars(paired_t(ours, theirs)).values()))
    return pd.DataFrame(lines, columns=["setting", "other", "difference", "low", "high", "p_value", "seeds"])


def _text(settings: Sequence[Setting], methods: Sequence[Method], table: pd.DataFrame, apart: pd.DataFrame) -> str:
    means, errors = (table.pivot(index="method", columns="setting", values=name) for name in ("mean", "error"))
    moved, low, high = (
        apart.pivot(index="other", columns="setting", values=name) for name in ("difference", "low", "high")
    )
    left = max(len(method.title) for method in methods)
    lines = []
    for kind, group in itertools.groupby(settings, lambda setting: (setting.metric, setting.scaling, setting.rounds)):
        own = list(group)
        names = [setting.name for setting in own]
        lines += ["{}, features {}, {} rounds; mean +- standard error over seeds".format(*kind)]
        lines += [f"  {text}" for text in dict.fromkeys(_budget(setting) for setting in own)]
        lines += ["", _line("", names, left)]
        for method in methods:
            cells = [f"{means[name][method.name]:.3f} +- {errors[name][method.name]:.3f}" for name in names]
            lines.append(_line(method.title, cells, left))
        lines += ["", "DP-Fed DRO, default, minus (* where the paired 95 % interval excludes 0):"]
        for method in methods:
            if method.name in moved.index:
                sure = {name: low[name][method.name] > 0 or high[name][method.name] < 0 for name in names}
                cells = [f"{moved[name][method.name]:+.3f}{'*' if sure[name] else ' '}" for name in names]
                lines.append(_line(method.title, cells, left))
        lines.append("")
    return "\n".join(lines)


def _line(title: str, cells: Sequence[str], left: int) -> str:
    return (title.ljust(left) + "".join(f"{cell:>16}" for cell in cells)).rstrip()


def _budget(setting: Setting) -> str:
    privacy = setting.privacy
    stated = moments_epsilon(privacy.delta, gaussian_mu(privacy.epsilon, privacy.delta))
    return (
        f"private methods: epsilon = {privacy.epsilon:.3f} at delta = {privacy.delta:g} for the whole run, exactly; "
        f"the paper's {setting.per_round:g} a round, which it states as {stated:.2f} in all"
    )

"""The files of the comparison of methods: all scores, means with errors, paired differences, and a text."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedhedge import files
from fedhedge.evaluation import paired_t
from fedhedge.experiments.dro_methods import Method
from fedhedge.experiments.dro_settings import Setting
from fedhedge.experiments.registry import EXPERIMENTS
from fedhedge.privacy import gaussian_mu, moments_epsilon
from fedhedge.report.section import Section, in_terminal, write_section
from fedhedge.report.tables import Table

# What the differences are of: the default against all other private methods, and the paper's settings against its
# baselines.
OURS, PAPER = "dp-dro", ("dp-dro-paper-linf", "dp-dro-paper-l1")
BASELINES = ("dp-erm", "dp-sgd-paper", "dp-sgd")
Cells = Mapping[tuple[str, str], Mapping[str, Any]]


def write(
    out: Path,
    command: str,
    name: str,
    settings: Sequence[Setting],
    methods: Sequence[Method],
    cells: Cells,
    *,
    quiet: bool,
) -> pd.DataFrame:
    """Write scores.csv, table.csv, differences.csv, table.txt and the page; returns the table (and prints the text).

    command: what makes it again. name: of the experiment. table: setting, method, mean, error (standard error over
    seeds), seeds. differences: method minus other, mean over seeds with its 95 % interval and p-value by Student's t,
    for the default DP-Fed DRO and each other private method, and for the paper's settings and its baselines.
    """
    scores, table, apart = _scores(cells), _table(settings, methods, cells), _differences(settings, methods, cells)
    budgets = [f"{setting.name}: {_budget(setting)}." for setting in settings]
    seeds = len(next(iter(cells.values()))["values"])
    section = Section(
        name,
        EXPERIMENTS[name].title,
        [
            f"Mean ± standard error over {seeds} seeds, each with a split, noise and folds of its own; four clients, a "
            f"tenth of whose labels is wrong. Differences are means over seeds, with * where the paired 95 % interval "
            "excludes 0; the intervals are in differences.csv.",
            " ".join(budgets),
        ],
        command,
        tables=_tables(settings, methods, table, apart),
        data={"scores": scores, "table": table, "differences": apart},
        tables_first=True,
    )
    write_section(out, section)
    text = "\n\n".join([in_terminal(section), *dict.fromkeys(budgets)]) + "\n"
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
    names = [method.name for method in methods if method.private]
    compared = {OURS: [name for name in names if name != OURS]}
    compared |= {name: [other for other in names if other in BASELINES] for name in PAPER if name in names}
    lines = []
    for setting in settings:
        for name, others in compared.items():
            for other in others:
                pair = (cells[setting.name, one]["values"] for one in (name, other))
                lines.append((setting.name, name, other, *vars(paired_t(*pair)).values()))
    return pd.DataFrame(lines, columns=["setting", "method", "other", "difference", "low", "high", "p_value", "seeds"])


def _tables(
    settings: Sequence[Setting], methods: Sequence[Method], table: pd.DataFrame, apart: pd.DataFrame
) -> dict[str, Table]:
    """Means and differences, a few tables for all columns of one metric, scaling and number of rounds."""
    means, errors = (table.pivot(index="method", columns="setting", values=name) for name in ("mean", "error"))
    titles = {method.name: method.title for method in methods}
    found = {}
    for kind, group in itertools.groupby(settings, lambda setting: (setting.metric, setting.scaling, setting.rounds)):
        names = [setting.name for setting in group]
        heading = "{}, features {}, {} rounds".format(*kind)
        rows = [
            [method.title, *[f"{means[name][method.name]:.3f} ± {errors[name][method.name]:.3f}" for name in names]]
            for method in methods
        ]
        found[heading] = Table(["method", *names], rows)
        for ours, pairs in apart.groupby("method", sort=False):
            found[f"{titles[str(ours)]}, minus ({heading})"] = _apart(pairs, names, titles)
    return found


def _apart(pairs: pd.DataFrame, names: Sequence[str], titles: Mapping[str, str]) -> Table:
    """Differences of one method, a line for each other method and a column for each setting."""
    rows: list[list[str]] = []
    strong = set()
    for other, line in pairs.groupby("other", sort=False):
        at = line.set_index("setting")
        sure = {name: bool(at.low[name] > 0 or at.high[name] < 0) for name in names}
        strong |= {(len(rows), column) for column, name in enumerate(names, start=1) if sure[name]}
        rows.append([titles[str(other)], *[f"{at.difference[name]:+.3f}{'*' * sure[name]}" for name in names]])
    return Table(["method", *names], rows, frozenset(strong))


def _budget(setting: Setting) -> str:
    privacy = setting.privacy
    stated = moments_epsilon(privacy.delta, gaussian_mu(privacy.epsilon, privacy.delta))
    return (
        f"private methods keep to epsilon = {privacy.epsilon:.3f} at delta = {privacy.delta:g} for the whole run, "
        f"exactly; the paper's {setting.per_round:g} a round, which it states as {stated:.2f} in all"
    )

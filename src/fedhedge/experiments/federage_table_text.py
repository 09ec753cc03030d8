"""What Table I's runs say: tables with tests, figures, and the section."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fedhedge.evaluation import by_client, per_client, spread, z_test
from fedhedge.evaluation.columns import as_count, as_percent, with_sd
from fedhedge.experiments.federage_runs import differences
from fedhedge.experiments.federage_size import Size
from fedhedge.report.client_bars import client_bars
from fedhedge.report.curves import curve_plot, metric_curves
from fedhedge.report.participation_plot import participation_plots
from fedhedge.report.plot import Plot
from fedhedge.report.section import Section, in_terminal, write_section
from fedhedge.report.settings_text import short
from fedhedge.report.study import Study
from fedhedge.report.style import looks, settings
from fedhedge.report.tables import Table

if TYPE_CHECKING:
    from fedhedge.simulation import Run

OURS, CONTROL, LAST, LEVEL = "FedeRage", "FedAvg, matched", 10, 0.05
_VIEWS = {"mean": "client mean", "worst": "worst client", "group": "rare mean", "cvar": "worst tenth"}
_KEPT = ("step", "local_steps", "mu", "alpha", "gamma", "beta_step")


def write(
    out: Path,
    size: Size,
    found: Mapping[str, Mapping[str, Sequence[Run]]],
    chosen: Mapping[str, Mapping[str, Mapping[str, Any]]],
    *,
    rare: tuple[int, ...],
    fast: bool,
    quiet: bool,
) -> pd.DataFrame:
    """Write table.csv, differences.csv, the figures and the section; returns the table (and prints what is shown).

    found: runs by law and method. chosen: hyper-parameters by law and method.
    """
    tables: dict[str, Table] = {}
    plots: list[Plot] = []
    lines, apart = [], []
    for law, runs in found.items():
        last = min(LAST, *(by_client(run).shape[0] for members in runs.values() for run in members))
        study = Study.of(runs, rare, target=_target(runs["FedAvg"], last), last=last)
        own, ahead = summary(study, law), against(study, law)
        lines.append(own)
        apart.append(ahead)
        tables[f"{law.capitalize()} availability, accuracy in %"] = _shown(own)
        if len(ahead):
            heading = f"{law.capitalize()} availability, {OURS} minus each method, points"
            tables[heading] = _shown_differences(ahead)
        tables[f"{law.capitalize()} availability, hyper-parameters"] = _shown_settings(chosen[law])
        plots += [_of_law(plot, law) for plot in _plots(study)]
    table = pd.concat(lines)
    section = Section(
        name=f"federage-table1-{size.dataset}",
        title=f"FedeRage, Table I and Figs. 4 to 6: {size.dataset}",
        text=_text(size, fast),
        command=f"fedhedge reproduce federage-table1-{size.dataset}{' --fast' if fast else ''}",
        tables=tables,
        plots=plots,
        data={"table": table, "differences": pd.concat(apart)},
        tables_first=True,
    )
    write_section(out, section)
    if not quiet:
        print(in_terminal(section))
    return table


def _target(runs: Sequence[Run], last: int) -> float:
    """The client mean that FedAvg ends with: what rounds and uplink are counted to."""
    return float(np.mean([per_client(run, last=last).mean() for run in runs]))


def summary(study: Study, law: str) -> pd.DataFrame:
    """One row for each method: Table I's numbers (mean, sd, Z test), and those over clients beside them.

    mean, sd: of the client mean over seeds and last evaluations together, divisor n - 1. z_p: two-sided p of the
    paper's Z test of FedeRage against the method.
    """
    compared = study.table
    rows = []
    for method, runs in study.groups.items():
        values = np.concatenate([by_client(run).mean(axis=1).tail(study.last) for run in runs])
        own = compared.loc[method]
        ours = study.groups[OURS]
        rows.append(
            {
                "law": law,
                "method": method,
                "mean": values.mean(),
                "sd": values.std(ddof=1),
                "mean_minus_sd": values.mean() - values.std(ddof=1),
                "z_p": np.nan if method == OURS else z_test(ours, runs, last=study.last).p_value,
                **{name: own[name] for name in ("worst_client", "rare", "cvar", "pooled", "loss", "client_sd")},
                "uplink": own["uplink"],
                "downlink": runs[0].costs["downlink"],
                "target": own["target"],
                "rounds_to_target": own["rounds_to_target"],
                "reached": own["reached"],
                "sent_to_target": own["rounds_to_target"] * own["uplink_per_round"],
                "seeds": own["seeds"],
            }
        )
    return pd.DataFrame(rows)


def against(study: Study, law: str) -> pd.DataFrame:
    """FedeRage minus each other method over paired seeds: mean difference, 95 % interval and p of the t test."""
    rows = []
    for method, final in study.final.items():
        for seed in final:
            seen = spread(final[seed], group=study.rare)
            views = {title: getattr(seen, view) for view, title in _VIEWS.items()}
            rows.append({"method": method, "seed": seed, **views})
    apart = differences(pd.DataFrame(rows), "method", OURS, _VIEWS.values())
    apart.insert(0, "law", law)
    return apart


def _shown(own: pd.DataFrame) -> Table:
    head = ["method", "mean ± sd", "mean − sd", "Z test p", "worst\nclient", "rare\nmean", "worst\ntenth", "loss"]
    head += ["uplink\neach", "downlink\neach", f"rounds to\n{as_percent(own['target'].iloc[0])} %", "sent by\nthen"]
    rows = []
    for line in own.to_dict("records"):
        p = "" if not np.isfinite(line["z_p"]) else f"{line['z_p']:.3f}{' *' if line['z_p'] < LEVEL else ''}"
        views = [as_percent(line[name]) for name in ("mean_minus_sd", "worst_client", "rare", "cvar")]
        counts = [as_count(line[name]) for name in ("uplink", "downlink")]
        needed = f"{as_count(line['rounds_to_target'])} ({line['reached']})"
        mean = with_sd(as_percent, line["mean"], line["sd"])
        row = [line["method"], mean, views[0], p, *views[1:], f"{line['loss']:.3f}", *counts]
        rows.append([*row, needed, as_count(line["sent_to_target"])])
    best = {column: int(own[name].argmax()) for column, name in ((1, "mean"), (2, "mean_minus_sd"))}
    return Table(head, rows, frozenset((row, column) for column, row in best.items()))


def _shown_differences(apart: pd.DataFrame) -> Table:
    rows: list[list[str]] = []
    strong = set()
    for method, part in apart.groupby("minus", sort=False):
        row = [str(method)]
        for line in part.to_dict("records"):
            if line["low"] > 0 or line["high"] < 0:
                strong.add((len(rows), len(row)))
            row.append("{:+.1f}\n({:+.1f} to {:+.1f})".format(*(100 * line[k] for k in ("difference", "low", "high"))))
        rows.append(row)
    return Table(["method", *_VIEWS.values()], rows, frozenset(strong))


def _shown_settings(chosen: Mapping[str, Mapping[str, Any]]) -> Table:
    rows = [[name, *[short(own[key]) if key in own else "" for key in _KEPT]] for name, own in chosen.items()]
    return Table(["method", *_KEPT], rows)


def _plots(study: Study) -> list[Plot]:
    """Figs. 4 (accuracy by round), 5 (weights) and 6 (accuracy by client), and accuracy against what was sent."""
    with settings():
        return [*metric_curves(study), *participation_plots(study), client_bars(study), _sent(study)]


def _of_law(plot: Plot, law: str) -> Plot:
    """The figure with the law in its name, its caption and its text."""
    said = f"{law.capitalize()} availability."
    caption, alt = f"{said} {plot.caption}".strip(), f"{said} {plot.alt}"
    return dataclasses.replace(plot, name=f"{law}-{plot.name}", caption=caption, alt=alt)


def _sent(study: Study) -> Plot:
    data = study.by_round(lambda table: table.mean(axis=1), "accuracy")
    for label, frame in data.items():
        run = study.groups[label][0]
        each = (run.costs["uplink"] + run.costs["downlink"]) * run.counts["uploads"] / run.counts["rounds"]
        frame.index = frame.index * each / 1e9
    title = "Mean test accuracy over clients by traffic"
    return curve_plot("traffic", title, data, looks(list(data)), True, across="10⁹ scalars, up and down")


def _text(size: Size, fast: bool) -> list[str]:
    model = ", ".join(f"{key} {value}" for key, value in size.model.settings().items())
    searched = (
        f"Hyper-parameters by the client mean of validation accuracy after {size.search_rounds:,} rounds, seeds "
        f"{', '.join(map(str, size.search_seeds))} (search.csv has all that was tried), for each law and method anew."
        if size.search_seeds
        else "Hyper-parameters are the methods' usual values: nothing was searched."
    )
    part = "This is a part only, to see that it works: fewer rounds, a smaller network, fewer seeds. " if fast else ""
    return [
        f"{part}{size.dataset}, 30 clients with at most two classes each, 3 get through in a round; model {model}; "
        f"{size.rounds:,} rounds, seeds {', '.join(map(str, size.seeds))}, paired: one seed has one initial model and "
        "one draw of clients and mini-batches for all methods. Clients 27 to 29 alone hold classes 8 and 9; under the "
        "skewed law they get through in .0107, .0078 and .0053 of the rounds. The paper's partition, model and "
        "hyper-parameters are in a supplement that we do not have.",
        searched,
        f"Accuracy of each client on test rows of its own; means over the last {LAST} evaluations and the seeds; sd "
        "over both together. Stressed: best mean and best mean − sd. Z test: the paper's, FedeRage against the method "
        "at 5 % (*); it takes consecutive evaluations as independent, so the paired t intervals over seeds are what to "
        "go by (stressed: 0 is outside). Rounds and scalars sent are counted until the client mean first reaches what "
        "FedAvg ends with.",
        f"The control, {CONTROL}, at FedeRage's step times its mean weight, moves as far as FedeRage does without "
        "choosing where: what FedeRage has over it is due to reweighting.",
    ]

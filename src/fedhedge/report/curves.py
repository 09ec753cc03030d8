"""Curves by round with bands over seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from fedhedge.evaluation import over_all
from fedhedge.evaluation.columns import as_number, as_percent, with_sd
from fedhedge.report.layout import (
    figure,
    fit_beside,
    headline,
    label_ends,
    logarithmic,
    room_beside,
    shortened,
    spread_out,
)
from fedhedge.report.plot import Plot
from fedhedge.report.study import Study
from fedhedge.report.style import MUTED, Look, looks


def metric_curves(study: Study) -> list[Plot]:
    """Client mean, worst client and mean of the rare clients by round; the loss too where the metric is accuracy."""
    worst = (lambda table: table.min(axis=1)) if study.higher_is_better else (lambda table: table.max(axis=1))
    what = f"{study.split} {study.metric}"
    plots = [
        _curves(study, "client-mean", f"Mean {what} over clients", lambda table: table.mean(axis=1), study.metric),
        _curves(study, "worst-client", f"{what.capitalize()} of the worst client", worst, study.metric),
    ]
    if study.rare:
        plots.append(
            _curves(
                study,
                "rare-clients",
                f"Mean {what} of the {len(study.rare)} rare clients",
                lambda table: table[list(study.rare)].mean(axis=1),
                study.metric,
            )
        )
    if study.metric != "loss":
        title = f"Mean {study.split} loss over clients"
        plots.append(_curves(study, "loss", title, lambda table: table.mean(axis=1), "loss"))
    return plots


def tail_curves(study: Study) -> list[Plot]:
    """FedeRage's threshold beta and tail rate by round, of the methods that have them."""
    shown = looks(list(study.groups))
    plots = []
    if beta := _scalars(study, "server", "beta"):
        caption = "Beta follows the (1 − alpha) quantile of the mini-batch losses."
        plots.append(curve_plot("beta", "Threshold beta of the server", beta, shown, False, caption))
    if rate := _scalars(study, "train", "tail_rate"):
        found = {study.groups[label][0].settings["algorithm"].get("alpha") for label in rate}
        levels = sorted(found - {None})
        caption = "Share of local steps since the evaluation before."
        if levels:
            marked = ", ".join(f"{100 * level:.3g} %" for level in levels)
            caption += f" It tends to alpha (dotted: {marked})."
        plots.append(curve_plot("tail-rate", "Local steps with loss ≥ beta", rate, shown, True, caption, levels))
    return plots


def _scalars(study: Study, split: str, metric: str) -> dict[str, pd.DataFrame]:
    """A scalar by round (index) and run (columns), of the methods that have it."""
    return {
        label: pd.concat([over_all(run, metric, split) for run in members], axis=1, join="inner")
        for label, members in study.groups.items()
        if all((run.history["metric"] == metric).any() for run in members)
    }


def _curves(study: Study, name: str, title: str, measure: Callable[[pd.DataFrame], pd.Series], metric: str) -> Plot:
    data = study.by_round(measure, metric)
    return curve_plot(name, title, data, looks(list(study.groups)), metric == "accuracy")


def curve_plot(
    name: str,
    title: str,
    data: Mapping[str, pd.DataFrame],
    shown: Mapping[str, Look],
    percent: bool,
    caption: str = "",
    levels: list[float] | None = None,
    across: str = "round",
) -> Plot:
    """Mean over runs (columns of each frame) by round (index), with a band of one standard deviation.

    across: what the index is, when it is not the round.
    percent: values are shares, shown in percent. levels: values to mark with a horizontal line. Rounds in which a
    run's value is not finite are left out, which the caption says; other values than shares get a logarithmic axis
    where they range over more than a factor of 100.
    """
    labels = list(data)
    kept = {label: frame.loc[np.isfinite(frame.to_numpy()).all(axis=1)] for label, frame in data.items()}
    missing = [f"{label} {len(data[label]) - len(frame)} of {len(data[label])}" for label, frame in kept.items()]
    short = [said for label, said in zip(labels, missing, strict=True) if len(kept[label]) < len(data[label])]
    if short:
        caption = f"{caption} Evaluations left out, because a value is not finite: {', '.join(short)}.".strip()
    drawn = {label: frame for label, frame in kept.items() if len(frame)}
    beside = fit_beside(labels)
    below = 0.0 if beside else 0.19 * len(labels) + 0.1
    made, (axes,) = figure(
        [2.0], left=0.48, right=room_beside(labels) if beside else 0.12, top=0.38, bottom=0.5 + below, gap=0.0
    )
    scale = 100.0 if percent else 1.0
    means = np.concatenate([np.empty(0), *(frame.mean(axis=1).to_numpy() for frame in drawn.values())])
    if not percent and spread_out(means):
        logarithmic(axes, means)
        caption = f"{caption} Logarithmic axis.".strip()
    ends = {label: _draw(axes, frame * scale, shown[label]) for label, frame in drawn.items()}
    headline(axes, f"{title}, %" if percent else title)
    axes.set_xlabel(across)
    rounds = [number for frame in data.values() for number in frame.index]
    if min(rounds) < max(rounds):
        axes.set_xlim(min(rounds), max(rounds))
    for level in levels or ():
        axes.axhline(level * scale, color=MUTED, linewidth=1.0, linestyle=(0, (2, 2)))
    if percent:
        low, high = axes.get_ylim()
        axes.set_ylim(max(low, 0.0), min(high, 101.0))
    if beside:
        label_ends(axes, ends, shown)
    else:
        handles = [Line2D([], [], color=shown[label].colour, linestyle=shown[label].dash) for label in labels]
        made.legend(
            handles, list(map(shortened, labels)), loc="lower left", bbox_to_anchor=(0.0, 0.0), borderaxespad=0.2
        )
    return Plot(name, f"{title} by {across}. {_in_words(data, percent, across)}", caption, made)


def _draw(axes: Axes, frame: pd.DataFrame, look: Look) -> tuple[float, float]:
    """Line and band of one method; its end point."""
    mean = frame.mean(axis=1)
    rounds = frame.index.to_numpy()
    marker = "o" if len(rounds) == 1 else None
    axes.plot(rounds, mean, color=look.colour, linestyle=look.dash, marker=marker)
    if frame.shape[1] > 1:
        sd = frame.std(axis=1, ddof=1)
        axes.fill_between(rounds, (mean - sd).clip(lower=0.0), mean + sd, color=look.colour, alpha=0.16, linewidth=0)
    return float(rounds[-1]), float(mean.iloc[-1])


def _in_words(data: Mapping[str, pd.DataFrame], percent: bool, across: str) -> str:
    show, unit = (as_percent, " %") if percent else (as_number, "")
    said = []
    for label, frame in data.items():
        last = frame.iloc[-1]
        if not np.isfinite(last).all():
            said.append(f"{label} not finite at {across} {frame.index[-1]:g}")
            continue
        value = with_sd(show, last.mean(), last.std(ddof=1))
        said.append(f"{label} {value}{unit} at {across} {frame.index[-1]:g}")
    return "; ".join(said) + "."

"""The figures of FedeRage's Fig. 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes

from fedhedge.report.layout import figure, headline, label_ends, room_beside
from fedhedge.report.plot import Plot
from fedhedge.report.style import looks


def dual_weights(dual: pd.DataFrame, runs: pd.DataFrame, weights: Sequence[float]) -> Plot:
    """Weight of each client against alpha, a line each; dots for runs; the right end is p."""
    labels = {i: f"client {i}" for i in range(len(weights))}
    styles = looks(list(labels.values()))
    made, (axes,) = figure([2.3], left=0.48, right=room_beside(list(labels.values())), top=0.38, bottom=0.5, gap=0.0)
    headline(axes, "Weight of each client under CVaR, %")
    axes.set_xscale("log")
    for client in labels:
        part, look = dual[dual["client"] == client], styles[labels[client]]
        axes.plot(part["alpha"], 100 * part["weight"], color=look.colour, linestyle=look.dash)
        seen = runs[runs["client"] == client].groupby("alpha")["tail_share"].mean()
        axes.plot(seen.index, 100 * seen, color=look.colour, marker="o", markersize=4, linewidth=0)
    _alpha_axis(axes)
    ends = {labels[i]: (1.0, 100 * float(weight)) for i, weight in enumerate(weights)}
    axes.set_xlim(float(dual["alpha"].min()) / 1.1, 1.0)
    axes.set_ylim(bottom=-1.5)
    label_ends(axes, ends, styles)
    first = dual[dual["alpha"] == dual["alpha"].min()].set_index("client")["weight"]
    said = "; ".join(f"client {i} {100 * first[i]:.0f} against {100 * weights[i]:.1f}" for i in first.index)
    alt = f"Weights in percent at alpha {dual['alpha'].min():g} against p at alpha 1: {said}."
    return Plot(
        "weights", alt, "Lines: optimum. Dots: share of the tail steps in runs. At alpha = 1 the weight is p.", made
    )


def optimum_by_b(frame: pd.DataFrame, rare: int) -> Plot:
    """Mean loss at the optimum of mean and CVaR against alpha, a line for each b: of the rare client, and of all."""
    labels = {b: f"b = {b}" for b in frame["b"].unique()}
    styles = looks(list(labels.values()))
    made, panels = figure(
        [1.6, 1.6], left=0.48, right=room_beside(list(labels.values())), top=0.38, bottom=0.5, gap=0.5
    )
    titles = {f"loss_{rare}": "Loss of the rare client at the optimum", "mean_loss": "Mean loss at the optimum"}
    for axes, (column, title) in zip(panels, titles.items(), strict=True):
        headline(axes, title)
        axes.set_xscale("log")
        ends = {}
        for b, part in frame.groupby("b"):
            look = styles[labels[b]]
            axes.plot(part["alpha"], part[column], color=look.colour, linestyle=look.dash)
            ends[labels[b]] = (1.0, float(part[column].iloc[-1]))
        _alpha_axis(axes)
        axes.set_xlim(float(frame["alpha"].min()), 1.0)
        label_ends(axes, ends, styles)
    panels[0].set_xlabel("")
    low = frame[frame["alpha"] == frame["alpha"].min()].set_index("b")[f"loss_{rare}"]
    said = ", ".join(f"b = {b} {value:.2f}" for b, value in low.items())
    alt = f"Loss of the rare client at alpha {frame['alpha'].min():g}: {said}; the same for all b at alpha 1."
    return Plot("optimum-by-b", alt, f"Every mini-batch enumerated, gamma {frame['gamma'].iloc[0]:g}.", made)


def accuracy_by_b(frame: pd.DataFrame, measures: Mapping[str, str]) -> Plot:
    """Accuracy on digits against b, a line for each method and a panel for each view, with deviations over seeds."""
    methods = list(dict.fromkeys(frame["method"]))
    styles = looks(methods)
    made, panels = figure([1.5] * len(measures), left=0.48, right=room_beside(methods), top=0.38, bottom=0.5, gap=0.5)
    sizes = sorted(frame["b"].unique())
    said = []
    for axes, (measure, title) in zip(panels, measures.items(), strict=True):
        headline(axes, f"Test accuracy, {title}, %")
        axes.set_xscale("log", base=2)
        ends = {}
        for number, method in enumerate(methods):
            grouped = 100 * frame[frame["method"] == method].groupby("b")[measure].agg(["mean", "std"])
            look = styles[method]
            # Beside each other, so that all bars are seen.
            places = grouped.index.to_numpy() * 1.06 ** (number - 1)
            axes.errorbar(
                places, grouped["mean"], grouped["std"], color=look.colour, linestyle=look.dash, elinewidth=1.0
            )
            ends[method] = (float(places[-1]), float(grouped["mean"].iloc[-1]))
            said.append(f"{title}, {method}: {', '.join(f'{value:.1f}' for value in grouped['mean'])}")
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.minorticks_off()
        axes.set_xlim(sizes[0] / 1.15, sizes[-1] * 1.15)
        low, high = axes.get_ylim()
        axes.set_ylim(max(low, 0.0), max(high, low + 1.0))
        label_ends(axes, ends, styles)
    panels[-1].set_xlabel("rows of a mini-batch, b")
    alt = f"Accuracy in percent for b = {', '.join(map(str, sizes))}. {'; '.join(said)}."
    return Plot("accuracy-by-b", alt, "Mean over seeds; bars: standard deviation.", made)


def _alpha_axis(axes: Axes) -> None:
    ticks = [0.05, 0.1, 0.2, 0.5, 1.0]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("alpha")

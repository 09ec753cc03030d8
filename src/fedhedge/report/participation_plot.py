"""The weight that each client really had, against the law of availability."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fedhedge.availability import Law
from fedhedge.evaluation import participation
from fedhedge.evaluation.columns import as_percent
from fedhedge.report.layout import client_ticks, figure, headline
from fedhedge.report.plot import Plot
from fedhedge.report.study import Study, descending
from fedhedge.report.style import INK, MUTED, SERIES, settings


def law_plot(law: Law) -> Plot:
    """p_i of each client as bars, and the uniform weight as a line (FedeRage paper, Fig. 5).

    Raises InvalidInput for a law that is not tied to a number of clients.
    """
    weight = law.weights()
    with settings():
        made, _ = _bars(weight, ())
    uniform = as_percent(1.0 / len(weight))
    text = f"Weight of each client, {as_percent(weight.max())} % to {as_percent(weight.min())} %; uniform {uniform} %."
    return Plot("availability", text, f"Bars: weight p by the law. Dashed line: uniform, {uniform} %.", made)


def _bars(weight: NDArray[np.float64], rare: Sequence[int]) -> tuple[Figure, Axes]:
    """The figure with weights [N] from the largest to the smallest, and the uniform weight as a line."""
    order = descending(weight)
    made, (axes,) = figure([1.7], left=0.48, right=0.08, top=0.38, bottom=0.58, gap=0.0)
    axes.grid(False)
    axes.bar(np.arange(len(weight)), 100.0 * weight[order], width=0.8, color=SERIES[0], alpha=0.55, linewidth=0)
    axes.axhline(100.0 / len(weight), color=MUTED, linewidth=1.0, linestyle=(0, (4, 2)))
    headline(axes, "Weight of a client in the average, %")
    axes.set_xlabel("client, from largest to smallest weight")
    client_ticks(axes, order, rare)
    return made, axes


def participation_plots(study: Study) -> list[Plot]:
    """p_i as bars, observed weights as dots, and the uniform weight as a line; one figure for each set of draws."""
    plots = []
    for number, (labels, runs) in enumerate(study.draws().items()):
        table = participation(runs)
        order = descending(table["weight"].to_numpy())
        made, axes = _bars(table["weight"].to_numpy(), study.rare)
        axes.plot(
            np.arange(len(table)), 100.0 * table["observed_weight"].to_numpy()[order], "o", color=INK, markersize=2.6
        )
        uniform = float(table["uniform_weight"].iloc[0])
        smallest = table.loc[order[-min(3, len(order)) :]]
        said = "; ".join(
            f"client {row['client']}: p {as_percent(row['weight'])} %, observed "
            f"{as_percent(row['observed_weight'])} %, through in {row['got_through']} rounds, "
            f"{row['expected']:.1f} expected"
            for row in smallest.to_dict("records")
        )
        seeds = f"{len(runs)} seeds together" if len(runs) > 1 else "one seed"
        plots.append(
            Plot(
                "participation" if number == 0 else f"participation-{number + 1}",
                f"Weight of each client. Uniform weight {as_percent(uniform)} %; the largest p is "
                f"{as_percent(table['weight'].max())} %. The smallest: {said}.",
                f"{', '.join(labels)}. Bars: weight p by the law. Dots: observed, {seeds}. "
                f"Dashed line: uniform, {as_percent(uniform)} %.",
                made,
            )
        )
    return plots

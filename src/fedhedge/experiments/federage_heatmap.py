"""Numbers over a grid of alpha and gamma as shaded cells."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from fedhedge.report.heatmap import shade
from fedhedge.report.layout import figure, headline
from fedhedge.report.plot import Plot


def heatmaps(name: str, title: str, table: pd.DataFrame, measures: Mapping[str, str]) -> Plot:
    """A panel for each measure; columns of `table`: alpha, gamma, measure, mean. Darker is better.

    Cells with gamma = 0 or alpha = 1 have the value of the line with gamma = 0.
    """
    alphas = [*sorted(set(table.loc[table["gamma"] > 0, "alpha"])), 1.0]
    gammas = sorted(set(table["gamma"]))
    height = 0.2 * len(gammas)
    made, panels = figure([height] * len(measures), left=0.48, right=0.1, top=0.38, bottom=0.5, gap=0.55)
    said = []
    for axes, (measure, shown) in zip(panels, measures.items(), strict=True):
        part = table[table["measure"] == measure].set_index(["alpha", "gamma"])["mean"]
        base = float(part.xs(0.0, level="gamma").iloc[0])
        loss = measure.endswith("loss")
        values = np.array([[base if g == 0.0 or a == 1.0 else float(part.loc[(a, g)]) for a in alphas] for g in gammas])
        ranks = -values if loss else values
        spread = np.ptp(ranks) or 1.0
        scaled = (ranks - ranks.min()) / spread
        texts = [[f"{value:.2f}" if loss else f"{100 * value:.1f}" for value in line] for line in values]
        shade(axes, texts, scaled, [f"{gamma:g}" for gamma in gammas], [f"{alpha:g}" for alpha in alphas])
        headline(axes, f"{title}: {shown}" + ("" if loss else ", %"))
        best = np.unravel_index(int(ranks.argmax()), ranks.shape)
        at = f"alpha {alphas[best[1]]:g}, gamma {gammas[best[0]]:g}"
        factor = 1.0 if loss else 100.0
        said.append(f"{shown}: FedAvg {factor * base:.2f}, best {factor * values[best]:.2f} at {at}")
    panels[-1].set_xlabel("alpha (columns); rows: gamma")
    return Plot(name, f"{title}. {'; '.join(said)}.", "Darker is better. gamma = 0 and alpha = 1 are FedAvg.", made)

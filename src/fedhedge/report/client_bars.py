"""The metric of every client at the end, sorted by availability."""

from __future__ import annotations

import numpy as np

from fedhedge.evaluation.columns import as_number, as_percent
from fedhedge.report.layout import client_ticks, figure, headline, logarithmic, shortened, spread_out
from fedhedge.report.plot import Plot
from fedhedge.report.study import Study, descending
from fedhedge.report.style import MUTED, looks


def client_bars(study: Study) -> Plot:
    """One row of bars for each method, one bar a client from the most to the least available, whiskers over seeds."""
    inclusion = study.runs[0].inclusion_probabilities
    order = descending(inclusion)
    labels = list(study.groups)
    percent = study.metric == "accuracy"
    scale, show = (100.0, as_percent) if percent else (1.0, as_number)
    unit = " %" if percent else ""
    made, axes = figure([0.72] * len(labels) + [0.5], left=0.48, right=0.08, top=0.34, bottom=0.58, gap=0.36)
    rare = np.isin(order, study.rare)
    positions = np.arange(len(order))
    kept = {label: frame.where(np.isfinite(frame)) for label, frame in study.final.items()}
    everything = np.concatenate([frame.to_numpy().ravel() for frame in kept.values()]) * scale
    highest = float(np.nanmax(everything, initial=0.0))
    wide = not percent and spread_out(everything)
    said = []
    for row, (label, frame) in enumerate(kept.items()):
        values = frame.reindex(order) * scale
        mean = values.mean(axis=1).to_numpy()
        colour = looks(labels)[label].colour
        for mask, alpha in ((rare, 1.0), (~rare, 0.55 if study.rare else 0.9)):
            axes[row].bar(positions[mask], mean[mask], width=0.8, color=colour, alpha=alpha, linewidth=0)
        if frame.shape[1] > 1:
            axes[row].vlines(
                positions, values.min(axis=1), values.max(axis=1), color=MUTED, linewidth=min(0.9, 30 / len(order))
            )
        if wide:
            logarithmic(axes[row], everything)
        else:
            axes[row].set_ylim(0.0, 100.0 if percent else 1.05 * highest or 1.0)
        if percent:
            axes[row].set_yticks([0, 50, 100])
        numbers = study.table.loc[label].to_dict()
        short = f"mean {show(numbers['mean'])}{unit}, worst {show(numbers['worst_client'])}{unit}"
        whole = f"{label}: {short}"
        headline(axes[row], whole if whole == shortened(whole) else shortened(label))
        said.append(f"{label}: {short}" + (f", rare {show(numbers['rare'])}{unit}" if study.rare else ""))
    last = axes[-1]
    for each in axes:
        each.grid(False)
    last.bar(positions, 100.0 * inclusion[order], width=0.8, color=MUTED, linewidth=0)
    headline(last, "P(client gets through in a round), %")
    last.set_xlabel("client, from most to least available")
    for other in axes[:-1]:
        other.set_xlim(-0.7, len(order) - 0.3)
        other.set_xticks([])
    client_ticks(last, order, study.rare)
    end = "at the last evaluation" if study.last == 1 else f"over the last {study.last} evaluations"
    alt = f"{study.split.capitalize()} {study.metric} of each client {end}. {'; '.join(said)}."
    caption = f"{study.split.capitalize()} {study.metric}{' in %' if percent else ''} of each client {end}."
    if any(not np.array_equal(run.inclusion_probabilities, inclusion) for run in study.runs):
        caption += f" Sorted by availability under {labels[0]}."
    endless = sum(int(np.isinf(frame.to_numpy()).sum()) for frame in study.final.values())
    if endless:
        caption += f" Left out: {endless} values that are not finite."
    if wide:
        caption += " Logarithmic axis."
    if study.rare:
        caption += " Full colour: rare clients."
    if any(frame.shape[1] > 1 for frame in study.final.values()):
        caption += " Lines: from the lowest to the highest seed."
    return Plot("clients", alt, caption, made)

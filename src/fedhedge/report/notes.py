"""What a reader should know before believing the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedhedge.evaluation import differing, over_all, participation
from fedhedge.evaluation.settings import REDRAWN
from fedhedge.report.study import Study

if TYPE_CHECKING:
    from fedhedge.simulation import Run

_UNLIKELY = 4.0
_UNSETTLED = 1.5


def notes(study: Study) -> list[str]:
    """Warnings about a study, each one sentence or two; empty when nothing speaks against it."""
    found = [
        *_comparability(study),
        *_missing(study),
        *(text for label, runs in study.groups.items() for text in _of_method(label, runs)),
        *(text for labels, runs in study.draws().items() for text in _of_draws(labels, runs)),
    ]
    return list(dict.fromkeys(found))


def _comparability(study: Study) -> list[str]:
    said = []
    ignored = ("seed", *REDRAWN)
    keys = [key for key in differing(study.runs) if not key.startswith("algorithm.") and key not in ignored]
    if keys:
        said.append(f"The runs differ in more than the method: {', '.join(keys)}.")
    seeds = {tuple(sorted(run.settings["seed"] for run in runs)) for runs in study.groups.values()}
    if len(seeds) > 1:
        said.append("The methods were not run on the same seeds.")
    if any(len(runs) == 1 for runs in study.groups.values()):
        said.append("One seed says nothing about the spread between seeds.")
    if study.metric == "loss":
        said.append("There is no accuracy, because a model does not predict: all numbers are losses, lower is better.")
    return said


def _missing(study: Study) -> list[str]:
    empty = sorted({int(client) for frame in study.final.values() for client in frame.index[frame.isna().any(axis=1)]})
    if not empty:
        return []
    return [f"{_clients(empty)} without {study.split} rows: left out of all numbers over clients."]


def _of_method(label: str, runs: Sequence[Run]) -> list[str]:
    said = []
    skipped = sum(run.counts["skipped_uploads"] for run in runs)
    if skipped:
        total = sum(run.counts["uploads"] for run in runs)
        said.append(f"{label}: {skipped} of {total} uploads were not finite and were left out.")
    if any(run.settings["weighting"] != "uniform" for run in runs):
        said.append(f"{label}: uploads are weighted by rows, so that p_i is not the weight of a client.")
    for run in runs:
        alpha, rate = run.settings["algorithm"].get("alpha"), _late_tail_rate(run)
        if alpha is not None and rate is not None and not alpha / _UNSETTLED <= rate <= alpha * _UNSETTLED:
            said.append(
                f"{label}, seed {run.settings['seed']}: {100 * rate:.3g} % of the local steps in the last half were in "
                f"the tail, against alpha = {100 * alpha:.3g} %: beta has not settled."
            )
    return said


def _late_tail_rate(run: Run) -> float | None:
    """Share of tail steps over the second half of the run; None for a method without a tail."""
    if not (run.history["metric"] == "tail_rate").any():
        return None
    rates = over_all(run, "tail_rate", "train")
    return float(rates[rates.index > run.counts["rounds"] / 2].mean())


def _of_draws(labels: Sequence[str], runs: Sequence[Run]) -> list[str]:
    said = []
    name = ", ".join(labels)
    rounds = sum(run.counts["rounds"] for run in runs)
    empty = sum(run.counts["empty_rounds"] for run in runs)
    if empty:
        said.append(f"{name}: nobody got through in {empty} of {rounds} rounds, which changed nothing.")
    table = participation(runs)
    absent = table.loc[table["got_through"] == 0, "client"].tolist()
    if absent:
        said.append(f"{name}: {_clients(absent)} never got through in {rounds} rounds.")
    odd = table.loc[np.abs(table["z"]) > _UNLIKELY, "client"].tolist()
    if odd:
        said.append(f"{name}: {_clients(odd)} got through far from as often as the law of availability says.")
    return said


def _clients(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:8])) + (f" and {len(numbers) - 8} more" if len(numbers) > 8 else "")
    return f"client{'s' if len(numbers) > 1 else ''} {shown}"

"""What a reader should know before believing the numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedhedge.evaluation import by_client, differing, over_all, participation
from fedhedge.evaluation.settings import REDRAWN
from fedhedge.report.study import Study

if TYPE_CHECKING:
    from fedhedge.simulation import Run

_UNLIKELY = 4.0
_UNSETTLED = 1.5


def notes(study: Study) -> list[str]:
    """Warnings about a study, one for each kind of trouble; empty when nothing speaks against it."""
    groups, draws = study.groups, {", ".join(labels): runs for labels, runs in study.draws().items()}
    kinds = {
        "Said before the run": _about(groups, _said),
        "Uploads that were not finite were left out": _about(groups, _skipped),
        "Reports that were not finite were left out": _about(groups, _refused),
        "Uploads were weighted by rows, so that p is not the weight of a client": _about(groups, _weighted),
        "Beta has not settled: share of tail steps in the last half against alpha": _about(groups, _unsettled),
        "Rounds in which nobody got through, and which changed nothing": _about(draws, _empty),
        "Never got through": _about(draws, _absent),
        "Got through far from as often as the law of availability says": _about(draws, _odd),
    }
    grouped = [f"{what}: {'; '.join(who)}." for what, who in kinds.items() if who]
    return [*_comparability(study), *_missing(study), *grouped]


def _about(groups: Mapping[str, Sequence[Run]], fact: Callable[[Sequence[Run]], str]) -> list[str]:
    """The fact about each group, where there is one to tell; a fact about all groups is told once."""
    found = {label: fact(runs) for label, runs in groups.items()}
    if len(set(found.values())) == 1 and len(found) > 1:
        found = {"all methods": next(iter(found.values()))}
    return [f"{label} ({text})" for label, text in found.items() if text]


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
    gone = {label: set(frame.index[frame.isna().any(axis=1)].tolist()) for label, frame in study.final.items()}
    # Whoever has no rows has no number at any time, under any method.
    early = [by_client(run, study.metric, study.split).iloc[0] for run in study.runs]
    empty = sorted(client for client in set.union(*gone.values()) if all(np.isnan(first[client]) for first in early))
    said = (
        [f"Left out of all numbers over clients, for want of {study.split} rows: {_clients(empty)}."] if empty else []
    )
    lost = {label: _clients(sorted(clients - set(empty))) for label, clients in gone.items()}
    named = "; ".join(f"{label} ({clients})" for label, clients in lost.items() if clients)
    if named:
        said.append(f"Left out of numbers over clients, because the {study.metric} is not a number: {named}.")
    return said


def _said(runs: Sequence[Run]) -> str:
    return "; ".join(dict.fromkeys(text for run in runs for text in run.warnings))


def _skipped(runs: Sequence[Run]) -> str:
    skipped, uploads = (sum(run.counts[name] for run in runs) for name in ("skipped_uploads", "uploads"))
    return f"{skipped} of {uploads}" if skipped else ""


def _refused(runs: Sequence[Run]) -> str:
    refused, probes = (sum(run.counts.get(name, 0) for run in runs) for name in ("skipped_reports", "probes"))
    return f"{refused} of {probes}" if refused else ""


def _weighted(runs: Sequence[Run]) -> str:
    found = sorted({run.settings["weighting"] for run in runs} - {"uniform"})
    return ", ".join(found)


def _unsettled(runs: Sequence[Run]) -> str:
    said = []
    for run in runs:
        alpha, rate = run.settings["algorithm"].get("alpha"), _late_tail_rate(run)
        if alpha is not None and rate is not None and not alpha / _UNSETTLED <= rate <= alpha * _UNSETTLED:
            said.append(f"seed {run.settings['seed']}: {100 * rate:.3g} % against {100 * alpha:.3g} %")
    return ", ".join(said)


def _late_tail_rate(run: Run) -> float | None:
    """Share of tail steps over the second half of the run; None for a method without a tail."""
    if not (run.history["metric"] == "tail_rate").any():
        return None
    rates = over_all(run, "tail_rate", "train")
    return float(rates[rates.index > run.counts["rounds"] / 2].mean())


def _empty(runs: Sequence[Run]) -> str:
    empty, rounds = (sum(run.counts[name] for run in runs) for name in ("empty_rounds", "rounds"))
    return f"{empty} of {rounds}" if empty else ""


def _absent(runs: Sequence[Run]) -> str:
    table = participation(runs)
    return _clients(table.loc[table["got_through"] == 0, "client"].tolist())


def _odd(runs: Sequence[Run]) -> str:
    # Where the method selects or uploads get lost, who took part is not who the law lets through.
    if any({"probes", "lost_uploads"} & run.counts.keys() for run in runs):
        return ""
    table = participation(runs)
    return _clients(table.loc[np.abs(table["z"]) > _UNLIKELY, "client"].tolist())


def _clients(numbers: Sequence[int]) -> str:
    if not numbers:
        return ""
    more = f" and {len(numbers) - 8} more" if len(numbers) > 8 else ""
    return f"client{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers[:8]))}{more}"

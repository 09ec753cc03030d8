"""Methods side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fedhedge import checks
from fedhedge.evaluation.clients import higher_is_better, over_all, per_client
from fedhedge.evaluation.group import group
from fedhedge.evaluation.rounds_to import rounds_to
from fedhedge.evaluation.spread import Spread, spread

if TYPE_CHECKING:
    from fedhedge.simulation import Run


def compare(
    runs: Sequence[Run] | Mapping[str, Sequence[Run]],
    rare: Sequence[int] = (),
    target: float | None = None,
    *,
    split: str = "test",
    last: int = 1,
    worst: int = 3,
    alpha: float = 0.1,
) -> pd.DataFrame:
    """One row for each method (see `group`), of the mean over the last `last` evaluations of each run.

    The metric is accuracy, or the loss where a model does not predict. Columns, each a mean over seeds of a number
    over clients (see `Spread`) unless said otherwise: seeds (how many); metric; mean and mean_sd (its standard
    deviation over seeds, divisor n - 1, NaN for one seed); pooled (over rows, not clients); worst_client;
    worst_mean (of the `worst` worst clients); rare and rare_sd over seeds (the clients `rare`, NaN when there are
    none); client_sd; cvar and its tail_mass alpha; loss (client mean); target, rounds_to_target (median over seeds;
    inf when half of them never reach it) and reached ("2 of 3"); uplink (scalars a participant sends a round, its
    report before training included); uplink_per_round (of all clients, measured); weighting of the uploads.
    Raises InvalidInput when a run lacks the metric, or `rare` names a client that does not exist.
    """
    groups = group(runs)
    metric = primary_metric([run for members in groups.values() for run in members], split)
    if target is not None:
        checks.number("target", target, above=0.0, high=1.0 if metric == "accuracy" else None)
    count = min(len(run.weights) for members in groups.values() for run in members)
    for client in rare:
        checks.integer("rare", client, low=0, high=count - 1)
    rows = []
    for members in groups.values():
        spreads, losses, pooled = [], [], []
        for run in members:
            values = per_client(run, metric, split, last=last)
            spreads.append(
                spread(values, worst=worst, alpha=alpha, group=rare, higher_is_better=higher_is_better(metric))
            )
            losses.append(per_client(run, "loss", split, last=last).mean())
            pooled.append(over_all(run, metric, split).tail(last).mean())
        rows.append(
            {
                "seeds": len(members),
                "metric": metric,
                **_over_seeds(spreads),
                "tail_mass": alpha,
                "pooled": _mean(pooled),
                "loss": _mean(losses),
                **_reached(members, metric, target, split),
                **_uplink(members),
                "weighting": ", ".join(sorted({run.settings["weighting"] for run in members})),
            }
        )
    return pd.DataFrame(rows, index=pd.Index(groups, name="method"))


def primary_metric(runs: Sequence[Run], split: str) -> str:
    """Accuracy when every run has it on the split, else the loss."""
    return "accuracy" if all(_has_accuracy(run, split) for run in runs) else "loss"


def _has_accuracy(run: Run, split: str) -> bool:
    return bool(((run.history["metric"] == "accuracy") & (run.history["split"] == split)).any())


def _over_seeds(spreads: list[Spread]) -> dict[str, float]:
    return {
        "mean": _mean([one.mean for one in spreads]),
        "mean_sd": _sd([one.mean for one in spreads]),
        "worst_client": _mean([one.worst for one in spreads]),
        "worst_mean": _mean([one.worst_mean for one in spreads]),
        "rare": _mean([one.group for one in spreads]),
        "rare_sd": _sd([one.group for one in spreads]),
        "client_sd": _mean([one.sd for one in spreads]),
        "cvar": _mean([one.cvar for one in spreads]),
    }


def _sd(values: Sequence[float]) -> float:
    """Standard deviation with divisor n - 1; NaN for a single value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 and np.isfinite(values).all() else math.nan


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _reached(runs: list[Run], metric: str, target: float | None, split: str) -> dict[str, Any]:
    if target is None:
        return {"target": math.nan, "rounds_to_target": math.nan, "reached": ""}
    needed = [rounds_to(run, metric, target, split=split) for run in runs]
    hits = [rounds for rounds in needed if rounds is not None]
    # A run that never gets there counts as slower than any other, so that the median is not of the lucky ones.
    median = float(np.median([math.inf if rounds is None else rounds for rounds in needed]))
    return {"target": target, "rounds_to_target": median, "reached": f"{len(hits)} of {len(needed)}"}


def _uplink(runs: list[Run]) -> dict[str, float]:
    each = [run.costs["uplink"] + run.costs.get("probe_uplink", 0) for run in runs]
    return {"uplink": _mean(each), "uplink_per_round": _mean([_sent(run) / run.counts["rounds"] for run in runs])}


def _sent(run: Run) -> int:
    """Scalars that clients sent in all: uploads, the lost ones included, and reports."""
    uploads = run.counts["uploads"] + run.counts.get("lost_uploads", 0)
    return run.costs["uplink"] * uploads + run.costs.get("probe_uplink", 0) * run.counts.get("probes", 0)

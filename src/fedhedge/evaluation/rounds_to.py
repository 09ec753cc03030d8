"""How many rounds a run needs to reach a target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedhedge import checks
from fedhedge.evaluation.clients import by_client, higher_is_better, over_all

if TYPE_CHECKING:
    from fedhedge.simulation import Run


def rounds_to(run: Run, metric: str, target: float, *, split: str = "test", pooled: bool = False) -> int | None:
    """First evaluated round at which the metric is at the target or better; None when it never is.

    The metric is the mean over clients (those with rows in the split), or with `pooled` the value over all rows.
    Better is larger, for a loss smaller. The resolution is that of the evaluations, not of single rounds.
    Raises InvalidInput when the run holds no such metric or the target is not a number.
    """
    target = checks.number("target", target)
    values = over_all(run, metric, split) if pooled else by_client(run, metric, split).mean(axis=1)
    reached = values >= target if higher_is_better(metric) else values <= target
    return int(values.index[reached][0]) if reached.any() else None

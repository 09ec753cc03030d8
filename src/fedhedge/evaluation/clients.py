"""What was measured on each client, taken from a run's history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from fedhedge import checks

if TYPE_CHECKING:
    from fedhedge.simulation import Run

# The client number under which a history keeps a value over all rows or of the server.
OVER_ALL = -1


def higher_is_better(metric: str) -> bool:
    """Whether a larger value of the metric is the better one: True for all but losses."""
    return not metric.endswith("loss")


def by_client(run: Run, metric: str = "accuracy", split: str = "test") -> pd.DataFrame:
    """The metric at every evaluation: rounds (index) by clients (columns), NaN for a client without rows in the split.

    Raises InvalidInput when the run holds no such values.
    """
    history = run.history[run.history["client"] != OVER_ALL]
    return _select(history, metric, split).pivot(index="round", columns="client", values="value")


def over_all(run: Run, metric: str = "accuracy", split: str = "test") -> pd.Series:
    """The metric by round: pooled over the rows of all clients, or a scalar of the training or the server.

    Raises InvalidInput when the run holds no such values.
    """
    history = run.history[run.history["client"] == OVER_ALL]
    return _select(history, metric, split).set_index("round")["value"].rename(metric)


def per_client(
    run: Run, metric: str = "accuracy", split: str = "test", *, round: int | None = None, last: int = 1
) -> pd.Series:
    """The metric of each client, indexed by client: its mean over the `last` evaluations up to `round`.

    round: a round that was evaluated; None takes the last one. A client without rows in the split has NaN.
    Raises InvalidInput when the run holds no such values, or fewer than `last` evaluations.
    """
    table = by_client(run, metric, split)
    if round is not None:
        table = table.loc[: checks.one_of("round", round, table.index.tolist())]
    last = checks.integer("last", last, low=1, high=len(table))
    return table.tail(last).mean(skipna=False).rename(metric)


def _select(history: pd.DataFrame, metric: str, split: str) -> pd.DataFrame:
    of_split = history[history["split"] == checks.one_of("split", split, sorted(set(history["split"])))]
    chosen: pd.DataFrame = of_split[
        of_split["metric"] == checks.one_of("metric", metric, sorted(set(of_split["metric"])))
    ]
    return chosen

"""How a metric is spread over clients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fedhedge import checks
from fedhedge.evaluation.cvar import cvar


@dataclass(frozen=True)
class Spread:
    """One number for each view of a metric over clients, every client counting alike.

    mean; sd: standard deviation over the clients (divisor N: they are the whole population), NaN where a value is
    infinite; worst: the worst client;
    worst_mean: mean of the worst k clients; cvar: mean of the worst tail of mass alpha; group: mean over a named
    group of clients, NaN without one.
    """

    mean: float
    sd: float
    worst: float
    worst_mean: float
    cvar: float
    group: float


def spread(
    values: pd.Series,
    *,
    worst: int = 3,
    alpha: float = 0.1,
    group: Sequence[int] = (),
    higher_is_better: bool = True,
) -> Spread:
    """The spread of `values` (indexed by client) over clients; clients with NaN (no rows) are left out.

    worst: k of the worst-k mean (all clients when there are fewer). alpha: mass of the tail in (0, 1]. group: client
    numbers, such as the rare ones. higher_is_better: False for losses, whose worst values are the largest.
    All fields are NaN when no client has a value. Raises InvalidInput for a group with an unknown client.
    """
    worst = checks.integer("worst", worst, low=1)
    members = [checks.one_of(f"group[{i}]", client, values.index.tolist()) for i, client in enumerate(group)]
    known = values.dropna()
    ordered = np.sort(known.to_numpy(np.float64)) if higher_is_better else -np.sort(-known.to_numpy(np.float64))
    tail = cvar(ordered, alpha, upper=not higher_is_better)
    if not len(ordered):
        return Spread(*[float("nan")] * 6)
    return Spread(
        mean=float(ordered.mean()),
        sd=float(ordered.std()) if np.isfinite(ordered).all() else float("nan"),
        worst=float(ordered[0]),
        worst_mean=float(ordered[:worst].mean()),
        cvar=tail,
        group=float(values.loc[members].mean()) if members else float("nan"),
    )

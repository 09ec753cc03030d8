"""Runs made by hand, whose numbers a test can recompute."""

import numpy as np
import pandas as pd

from fedhedge import models
from fedhedge.simulation import Run


def make_run(
    accuracy=None,
    loss=None,
    *,
    seed=0,
    algorithm=None,
    every=10,
    through=None,
    inclusion=None,
    weights=None,
    uplink=100,
    server=None,
    empty_rounds=0,
    skipped=0,
    said=(),
    **settings,
):
    """A run with the metrics given as tables [evaluations, clients]; evaluation e is at round e * every.

    through: list of (round, client) pairs that got through; None lets client 0 through in every round.
    server: {(split, metric): values after round 0} of scalars that belong to no client.
    """
    tables = {name: np.asarray(t, float) for name, t in (("accuracy", accuracy), ("loss", loss)) if t is not None}
    if "loss" not in tables:
        tables["loss"] = 1.0 - tables["accuracy"]
    evaluations, clients = tables["loss"].shape
    rounds = max(1, (evaluations - 1) * every)
    rows = []
    for e in range(evaluations):
        for name, table in tables.items():
            rows += [(e * every, i, "test", name, table[e, i]) for i in range(clients)]
            rows.append((e * every, -1, "test", name, np.nanmean(table[e])))
        for (split, name), values in (server or {}).items():
            if e > 0:
                rows.append((e * every, -1, split, name, values[e - 1]))
    pairs = [(t, 0) for t in range(rounds)] if through is None else through
    model = models.Linear()
    return Run(
        model=model.build((2,), 2),
        params=None,
        average_params=None,
        history=pd.DataFrame(rows, columns=["round", "client", "split", "metric", "value"]),
        participation=pd.DataFrame(np.asarray(pairs, np.int64).reshape(-1, 2), columns=["round", "client"]),
        settings={
            "algorithm": algorithm or {"name": "FedAvg", "step": 0.1},
            "model": model.settings(),
            "availability": {"name": "Everyone"},
            "data": {"source": "made", "clients": clients, "digest": "0" * 64},
            "rounds": rounds,
            "seed": seed,
            "weighting": "uniform",
            **settings,
        },
        costs={"uplink": uplink, "downlink": uplink, "client_state": 0, "server_state": uplink},
        counts={
            "rounds": rounds,
            "empty_rounds": empty_rounds,
            "uploads": len(pairs),
            "skipped_uploads": skipped,
        },
        classes=(0, 1),
        feature_shape=(2,),
        names=tuple(f"client {i}" for i in range(clients)),
        feature_names=(),
        warnings=said,
        version="0",
        inclusion_probabilities=np.full(clients, 1.0) if inclusion is None else np.asarray(inclusion, float),
        weights=np.full(clients, 1 / clients) if weights is None else np.asarray(weights, float),
    )

"""Studies made by hand for the tests of the report."""

import numpy as np

from evaluation.made_runs import make_run

RARE = (4, 5)
CLIENTS = 6


def federation(seeds=3, evaluations=5, **settings):
    """FedAvg, and FedeRage with its tail, over six clients of which the last two are rare."""
    inclusion = np.array([0.9, 0.8, 0.6, 0.5, 0.15, 0.05])
    runs = []
    for name in ("FedAvg", "FedeRage"):
        for seed in range(seeds):
            rng = np.random.default_rng([seed, len(name)])
            accuracy = np.clip(np.linspace(0.1, 0.8, evaluations)[:, None] + 0.1 * rng.random(CLIENTS), 0, 1)
            draws = np.random.default_rng(seed).random((10 * (evaluations - 1), CLIENTS)) < inclusion
            tail = {("server", "beta"): rng.random(evaluations - 1), ("train", "tail_rate"): [0.1] * (evaluations - 1)}
            runs.append(
                make_run(
                    accuracy,
                    seed=seed,
                    algorithm={"name": name, "step": 0.1} | ({"alpha": 0.1} if name == "FedeRage" else {}),
                    through=np.argwhere(draws),
                    empty_rounds=int((~draws.any(axis=1)).sum()),
                    inclusion=inclusion,
                    weights=inclusion / inclusion.sum(),
                    server=tail if name == "FedeRage" else None,
                    **settings,
                )
            )
    return runs

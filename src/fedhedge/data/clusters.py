"""Clusters of points in the plane, one class each."""

from __future__ import annotations

import numpy as np

from fedhedge import checks, streams
from fedhedge.data.scaling import Scaling
from fedhedge.data.source import Dataset

CLUSTERS = 5


def load_clusters(rows: int = 200, radius: float = 2.0, spread: float = 0.6, seed: int = 0) -> Dataset:
    """Five Gaussian clusters round a circle, `rows` points each: the picture of Fig. 1 of the FedeRage paper.

    Cluster k has its centre at `radius` (cos 2 pi k / 5, sin 2 pi k / 5) and standard deviation `spread` in both
    directions; it is class k. Give each cluster to a client of its own with `Dominant(clients=5, share=1.0)`. The
    paper's centres and spreads are not published. Raises InvalidInput.
    """
    rows = checks.integer("rows", rows, low=1)
    radius = checks.number("radius", radius, above=0.0)
    spread = checks.number("spread", spread, above=0.0)
    streams.check_seed(seed)
    points = []
    for cluster in range(CLUSTERS):
        angle = 2.0 * np.pi * cluster / CLUSTERS
        rng = streams.generator(seed, streams.Purpose.SOURCE, client=cluster)
        points.append(radius * np.array([np.cos(angle), np.sin(angle)]) + spread * rng.standard_normal((rows, 2)))
    return Dataset(
        name="clusters",
        features=np.concatenate(points),
        labels=np.repeat(np.arange(CLUSTERS), rows),
        classes=tuple(range(CLUSTERS)),
        feature_names=("x", "y"),
        scaling=Scaling.none(),
        description={"rows": rows, "radius": radius, "spread": spread, "seed": seed},
    )

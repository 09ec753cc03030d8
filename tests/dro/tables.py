"""Random labelled tables for the tests of this folder."""

import numpy as np


def table(seed, rows=30, features=4, classes=3, spread=1.0):
    """Gaussian classes round random means, scaled to norms near 1; every class has a row if there are enough."""
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % classes
    means = rng.normal(size=(classes, features))
    X = (means[y] + spread * rng.normal(size=(rows, features))) / np.sqrt(features)
    return X, y

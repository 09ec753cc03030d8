"""Iris over three sites, and a private classifier for it."""

import numpy as np
from sklearn.datasets import load_iris

import fedhedge as fh

X, SPECIES = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[SPECIES]
SITES = np.array(["a", "b", "c"])[np.arange(len(X)) % 3]
COLUMNS = ["sepal length", "sepal width", "petal length", "petal width"]
RANGES = [(4.0, 8.0), (1.5, 5.0), (0.5, 7.5), (0.0, 3.0)]
BUDGET = fh.Privacy(epsilon=8.0, delta=1e-5)
PRIVATE = {"method": "dp-dro", "privacy": BUDGET, "feature_bounds": RANGES, "rounds": 20, "random_state": 3}


def private(**changes):
    return fh.FederatedDROClassifier(**PRIVATE | changes)

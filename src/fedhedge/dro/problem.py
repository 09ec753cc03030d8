"""The data of one client's robust problem, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedhedge import checks
from fedhedge.dro.norms import NORMS

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

# What the client solver takes for active: a weight above WEIGHT, or a value within NEAR of the largest. What it takes
# for missing: a value that exceeds the model's by more than VIOLATION.
WEIGHT = 1e-7
NEAR = 1e-6
VIOLATION = 1e-9


@dataclass(frozen=True)
class Problem:
    """Rows, Wasserstein radius r, label cost kappa (infinite: labels are trusted), norm on features, classes K."""

    X: Floats
    y: Ints
    radius: float
    label_cost: float
    norm: str
    classes: int

    @property
    def finite_cost(self) -> float:
        """kappa, or zero where labels are trusted and no piece is priced."""
        return self.label_cost if math.isfinite(self.label_cost) else 0.0

    @classmethod
    def checked(cls, X: Any, y: Any, radius: Any, label_cost: Any, norm: Any, classes: int) -> Problem:
        """Take arrays and settings as a user gives them; raises InvalidInput naming what cannot be used."""
        checks.one_of("norm", norm, NORMS)
        radius = checks.number("radius", radius, low=0.0)
        if label_cost != math.inf:
            label_cost = checks.number("label_cost", label_cost, low=0.0)
        checks.integer("classes", classes, low=2)
        rows = matrix("X", X)
        if rows.shape[0] == 0 or rows.shape[1] == 0:
            raise checks.InvalidInput("X", rows.shape, "at least one row and one feature")
        return cls(rows, labels(y, rows.shape[0], classes), radius, float(label_cost), norm, classes)


def matrix(name: str, value: Any) -> Floats:
    """A two-dimensional array of finite numbers in float64; raises InvalidInput otherwise."""
    try:
        result = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise checks.InvalidInput(name, value, "a two-dimensional array of numbers") from None
    if result.ndim != 2:
        raise checks.InvalidInput(name, f"an array of shape {result.shape}", "a two-dimensional array of numbers")
    finite = np.isfinite(result)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise checks.InvalidInput(f"{name}[{row}, {column}]", float(result[row, column]), "a finite number")
    return result


def labels(value: Any, rows: int, classes: int) -> Ints:
    """One class index in 0..classes-1 per row; raises InvalidInput otherwise."""
    result = np.asarray(value)
    if result.shape != (rows,):
        raise checks.InvalidInput("y", f"an array of shape {result.shape}", f"one label per row, shape ({rows},)")
    if result.dtype.kind not in "iu":
        raise checks.InvalidInput("y", f"an array of {result.dtype}", "whole class indices")
    outside = (result < 0) | (result >= classes)
    if outside.any():
        row = int(np.argmax(outside))
        raise checks.InvalidInput(f"y[{row}]", int(result[row]), f"a class index from 0 to {classes - 1}")
    return result.astype(np.intp, copy=False)

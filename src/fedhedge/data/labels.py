"""Labels of any kind to class indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from fedhedge.checks import InvalidInput


def encode(labels: Any, name: str = "labels", *, regression: bool = False) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Class index of every row (int32) and the classes in sorted order.

    Numbers that are not all whole, or any numbers for a `regression`, come back as float64 targets with no classes.
    Raises InvalidInput when labels are missing or mix text and numbers.
    """
    values = np.asarray(labels)
    if values.ndim != 1:
        raise InvalidInput(name, f"a {type(labels).__name__} of {values.ndim} dimensions", "one value for each row")
    if values.dtype.kind == "O":
        values = _uniform(values, name)
    if regression and values.dtype.kind in "iu":
        values = values.astype(np.float64)
    if values.dtype.kind not in ("f" if regression else "biufUT"):
        raise InvalidInput(name, str(values.dtype), "text, whole numbers, or finite numbers for a regression")
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            raise InvalidInput(name, values[~np.isfinite(values)][0], "a label in every row")
        if regression or (values != np.round(values)).any():
            return values.astype(np.float64), ()
        if np.abs(values).max() >= 2.0**63:
            raise InvalidInput(name, float(np.abs(values).max()), "class labels within 64 bits")
        values = values.astype(np.int64)
    classes, index = np.unique(values, return_inverse=True)
    return index.astype(np.int32), tuple(classes.tolist())


def _uniform(values: np.ndarray, name: str) -> np.ndarray:
    """An object array as text or as numbers, whichever all its values are."""
    missing = pd.isna(values)
    if missing.any():
        raise InvalidInput(name, values[missing][0], "a label in every row", f"{missing.sum()} rows have none")
    if all(isinstance(value, str) for value in values):
        return values.astype(str)
    if any(isinstance(value, str) for value in values):
        raise InvalidInput(name, "text and numbers", "either text or numbers, not both")
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(name, values[0], "text or numbers") from None

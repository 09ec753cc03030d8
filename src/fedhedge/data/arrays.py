"""Checks that the arrays of a table fit together, and arrays that nobody can change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from fedhedge.checks import InvalidInput
from fedhedge.data.scaling import as_floats


def features(values: Any) -> np.ndarray:
    """Rows of numbers as float32 (from bytes and float32) or float64, of shape [n, ...] with nothing empty."""
    if np.ma.is_masked(values):
        raise InvalidInput("features", "a masked array", "numbers in every row and column")
    try:
        # A memory map stays one, so that it can stay where it is.
        array = np.asanyarray(values) if isinstance(values, np.memmap) else np.asarray(values)
    except ValueError:
        raise InvalidInput("features", "rows of different lengths", "one row shape") from None
    numeric = array.dtype.kind in "biuf"
    if array.dtype.kind == "O" and not any(isinstance(value, str) for value in array.flat):
        try:
            array, numeric = array.astype(np.float64), True
        except (TypeError, ValueError):
            numeric = False
    if not numeric:
        raise InvalidInput("features", _kind(values, array), "numbers, one row for each label")
    if array.ndim < 2 or 0 in array.shape:
        raise InvalidInput("features", array.shape, "at least one row and one column: shape [n, ...]")
    return as_floats(array)


def targets(values: Any, classes: Sequence[Any] | None, n: int) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Class indices (int32) with their classes, or real targets (float64) with none."""
    array = np.asarray(values)
    length("labels", array, n)
    if array.dtype.kind == "f" and not classes:
        if not np.isfinite(array).all():
            raise InvalidInput("labels", float(array[~np.isfinite(array)][0]), "finite numbers")
        return array.astype(np.float64, copy=False), ()
    if array.dtype.kind not in "iu":
        raise InvalidInput("labels", str(array.dtype), "class indices, or real targets with no classes")
    known = range(int(array.max()) + 1) if classes is None else classes
    in_range("labels", array, len(known))
    plain = tuple(label.item() if isinstance(label, np.generic) else label for label in known)
    return array.astype(np.int32, copy=False), plain


def indices(name: str, values: Any, n: int) -> np.ndarray:
    """Whole numbers, one for each of n rows."""
    array = np.asarray(values)
    length(name, array, n)
    if array.dtype.kind not in "iu":
        raise InvalidInput(name, str(array.dtype), "whole numbers")
    return array


def length(name: str, values: Any, n: int) -> None:
    """Refuse anything but one value for each of n rows."""
    if np.shape(values) != (n,):
        raise InvalidInput(name, f"shape {np.shape(values)}", f"shape ({n},), one for each row of features")


def in_range(name: str, values: np.ndarray, size: int) -> None:
    """Refuse indices outside 0..size-1."""
    outside = (values < 0) | (values >= size)
    if outside.any():
        raise InvalidInput(name, int(values[outside][0]), f"whole numbers from 0 to {size - 1}")


def distinct(name: str, values: Sequence[Any]) -> None:
    """Refuse a value that stands twice."""
    repeated = [value for value in values if list(values).count(value) > 1] if len(set(values)) < len(values) else []
    if repeated:
        raise InvalidInput(name, repeated[0], "each one once")


def same_columns(tables: Sequence[Any]) -> tuple[str, ...]:
    """Column names of the tables, which must agree in name and order where they have any."""
    named = [column_names(table) for table in tables if isinstance(table, pd.DataFrame)]
    for other in named[1:]:
        if other != named[0]:
            raise InvalidInput("features", list(other), f"the columns {list(named[0])}, in this order, in all splits")
    return named[0] if named else ()


def column_names(values: Any) -> tuple[str, ...]:
    """Names of a DataFrame's columns; none for anything else."""
    return tuple(map(str, values.columns)) if isinstance(values, pd.DataFrame) else ()


def lock(array: np.ndarray) -> np.ndarray:
    """Mark an array that nobody else holds as read-only, so that `frozen` need not copy it."""
    array.setflags(write=False)
    return array


def frozen(array: np.ndarray) -> np.ndarray:
    """The array itself when it is read-only and owns its memory, or is `mapped`; else a read-only copy."""
    kept = mapped(array) or (array.flags.owndata and not array.flags.writeable)
    return array if kept else lock(np.array(array, order="C"))


def mapped(array: np.ndarray) -> bool:
    """Whether an array is a file mapped for reading only, as of `np.load(path, mmap_mode="r")`."""
    return isinstance(array, np.memmap) and array.filename is not None and not array.flags.writeable


def _kind(values: Any, array: np.ndarray) -> str:
    if isinstance(values, pd.DataFrame):
        text = [f"{name!r}" for name in values if not pd.api.types.is_numeric_dtype(values[name])]
        return f"columns that are not numbers: {', '.join(text)}"
    return f"values of type {array.dtype}"

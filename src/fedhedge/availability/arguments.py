"""Checks of the arguments that several laws share: probabilities and rates, as one number or as arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedhedge.checks import InvalidInput

_SHAPES = {0: "a number", 1: "a list with one number per client", 2: "a table with one row per round"}


def numbers(name: str, value: Any, *, dimensions: Iterable[int], high: float | None = None) -> NDArray[np.float64]:
    """A read-only float64 copy of finite numbers, none negative and none above `high`.

    Raises InvalidInput that names the entry which is out of range.
    """
    shapes = " or ".join(_SHAPES[count] for count in dimensions)
    try:
        given = np.asarray(value)
    except ValueError:
        raise InvalidInput(name, value, f"{shapes}, all rows of one length") from None
    if given.dtype.kind not in "iuf" or given.ndim not in dimensions or given.size == 0:
        raise InvalidInput(name, value, shapes)
    result = np.array(given, dtype=np.float64)
    limit = np.inf if high is None else high
    wrong = np.argwhere(~(np.isfinite(result) & (result >= 0) & (result <= limit)))
    if len(wrong):
        place = "".join(f"[{index}]" for index in wrong[0])
        allowed = "a number, 0 or more" if high is None else f"a number in [0, {high:g}]"
        raise InvalidInput(f"{name}{place}", result[tuple(wrong[0])].item(), allowed)
    result.flags.writeable = False
    return result


def probabilities(name: str, value: Any, *, dimensions: Iterable[int] = (0, 1)) -> NDArray[np.float64]:
    """A read-only float64 copy of probabilities, each in [0, 1]; raises InvalidInput otherwise."""
    return numbers(name, value, dimensions=dimensions, high=1.0)


def some_client(name: str, value: NDArray[np.float64]) -> None:
    """Refuse a law under which nobody ever gets through: its weights would be 0/0."""
    if not (value > 0).any():
        raise InvalidInput(name, value.tolist(), "at least one positive entry", "nobody would ever get through")

"""Argument checks that name the thing, the value received and what is allowed."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable
from typing import Any, TypeVar

Choice = TypeVar("Choice")
LARGEST = 2**31 - 1


class InvalidInput(ValueError):
    """A value that cannot be used; the message reads `name: received value; allowed: what`."""

    def __init__(self, name: str, received: object, allowed: str, hint: str = "") -> None:
        self.name = name
        self.received = received
        self.allowed = allowed
        self.hint = hint
        super().__init__(name, received, allowed, hint)

    def __str__(self) -> str:
        shown = repr(self.received)
        if len(shown) > 120:
            shown = shown[:117] + "..."
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.name}: received {shown}; allowed: {self.allowed}{hint}"

    def inside(self, prefix: str) -> InvalidInput:
        """The same complaint with the name put below `prefix` (`alpha` -> `algorithm.alpha`)."""
        return InvalidInput(f"{prefix}.{self.name}", self.received, self.allowed, self.hint)


def number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    low: float | None = None,
    below: float | None = None,
    high: float | None = None,
) -> float:
    """A finite real number, returned as a float; `above` and `below` exclude the end, `low` and `high` include it."""
    left = f"({above:g}" if above is not None else f"[{low:g}" if low is not None else "(-inf"
    right = f"{below:g})" if below is not None else f"{high:g}]" if high is not None else "inf)"
    allowed = f"a number in {left}, {right}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidInput(name, value, allowed)
    try:
        result = float(value)
    except OverflowError:
        raise InvalidInput(name, value, allowed) from None
    if not math.isfinite(result):
        raise InvalidInput(name, value, allowed)
    outside = (
        (above is not None and result <= above)
        or (low is not None and result < low)
        or (below is not None and result >= below)
        or (high is not None and result > high)
    )
    if outside:
        raise InvalidInput(name, value, allowed)
    return result


def integer(name: str, value: Any, *, low: int | None = None, high: int | None = None) -> int:
    """A whole number within the ends, both included, and within 32 bits; booleans are not numbers here."""
    if high is None and isinstance(value, numbers.Integral) and int(value) > LARGEST:
        high = LARGEST
    if low is not None and high is not None:
        allowed = f"a whole number from {low} to {high}"
    elif low is not None:
        allowed = f"a whole number, {low} or more"
    else:
        allowed = "a whole number" if high is None else f"a whole number, {high} or less"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InvalidInput(name, value, allowed)
    result = int(value)
    if (low is not None and result < low) or (high is not None and result > high):
        raise InvalidInput(name, value, allowed)
    return result


def boolean(name: str, value: Any) -> bool:
    """True or False, nothing that merely behaves like it."""
    if not isinstance(value, bool):
        raise InvalidInput(name, value, "true or false", "without quotes" if isinstance(value, str) else "")
    return value


def instance(name: str, value: Any, kind: type | tuple[type, ...], allowed: str) -> None:
    """An object of the wanted kind, and not its class."""
    if not isinstance(value, kind):
        raise InvalidInput(name, value, allowed)


def one_of(name: str, value: Any, allowed: Iterable[Choice]) -> Choice:
    """One of the listed values; the message proposes the nearest one."""
    known = list(allowed)
    for choice in known:
        if value == choice and type(value) is type(choice):
            return choice
    raise InvalidInput(name, value, ", ".join(str(choice) for choice in known), nearest(value, known))


def nearest(value: object, known: Iterable[object]) -> str:
    """A hint that proposes the known name nearest to `value`, or nothing when none is near."""
    names = [str(choice) for choice in known]
    lowered = {name.lower(): name for name in names}
    close = difflib.get_close_matches(str(value).lower(), list(lowered), n=1, cutoff=0.5)
    return f"did you mean {lowered[close[0]]}?" if close else ""


def integers(name: str, value: Any, *, low: int | None = None, high: int | None = None) -> tuple[int, ...]:
    """A non-empty list of whole numbers within the ends, returned as a tuple."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidInput(name, value, "a list of whole numbers")
    result = tuple(integer(f"{name}[{i}]", entry, low=low, high=high) for i, entry in enumerate(value))
    if not result:
        raise InvalidInput(name, value, "a list of at least one whole number")
    return result


def numbers_of(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    low: float | None = None,
    high: float | None = None,
) -> tuple[float, ...]:
    """A list of finite numbers within the ends, as of `number`, returned as a tuple; it may be empty."""
    allowed = "a list of numbers"
    if isinstance(value, str | dict) or not isinstance(value, Iterable):
        raise InvalidInput(name, value, allowed)
    try:
        entries = list(value)
    except TypeError:
        # An array without dimensions calls itself iterable.
        raise InvalidInput(name, value, allowed) from None
    return tuple(number(f"{name}[{i}]", entry, above=above, low=low, high=high) for i, entry in enumerate(entries))

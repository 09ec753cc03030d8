"""The keys of a table are the parameters of what the table makes, so that nothing is listed twice."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from fedhedge import checks
from fedhedge.checks import InvalidInput, nearest

Entry = TypeVar("Entry")
Parameters = Mapping[str, inspect.Parameter]


def parameters(function: Callable[..., Any], *without: str) -> dict[str, inspect.Parameter]:
    """The parameters that a table may set, in order, without those that something else decides."""
    found = inspect.signature(function).parameters
    return {name: parameter for name, parameter in found.items() if name not in without}


@contextmanager
def below(where: str) -> Iterator[None]:
    """Put the names in complaints below the table `where`."""
    try:
        yield
    except InvalidInput as error:
        raise error.inside(where) from None


def table(content: Any, where: str, example: str) -> dict[str, Any]:
    """A copy of a table; raises InvalidInput, which shows an `example`, when it is missing or no table."""
    if not isinstance(content, Mapping):
        raise InvalidInput(where, content, f"a table [{where}] that says at least {example}")
    return dict(content)


def choose(content: dict[str, Any], where: str, key: str, registry: Mapping[str, Entry]) -> tuple[str, Entry]:
    """The name that `key` of a table gives, which is taken out of the table, and its entry in a registry."""
    name = checks.one_of(f"{where}.{key}", content.pop(key, None), registry)
    return name, registry[name]


def check_keys(
    content: Mapping[str, Any], known: Collection[str], where: str, elsewhere: Mapping[str, str], whose: str = ""
) -> None:
    """Raises InvalidInput for a key that is not known, with what `elsewhere` says of it or the nearest known key."""
    for key, value in content.items():
        if key not in known:
            of = f" of {whose}" if whose else ""
            allowed = f"the keys{of}: {', '.join(known)}" if known else f"no further key{of}"
            raise InvalidInput(_prefix(where) + key, value, allowed, elsewhere.get(key) or nearest(key, known))


def settle(
    content: Mapping[str, Any],
    known: Parameters,
    where: str,
    filled: Mapping[str, Any],
    elsewhere: Mapping[str, str],
    whose: str = "",
) -> dict[str, Any]:
    """A value for every known parameter: the one given, else the one in `filled`, else the default.

    Raises InvalidInput for a key that is not known, as `check_keys` does, and for one that is missing and has no
    default.
    """
    check_keys(content, known, where, elsewhere, whose)
    values = {}
    for name, parameter in known.items():
        values[name] = content.get(name, filled.get(name, parameter.default))
        if values[name] is inspect.Parameter.empty:
            raise InvalidInput(_prefix(where) + name, None, "a value: this key has no default")
    return values


def pick(values: Mapping[str, Any], known: Parameters) -> dict[str, Any]:
    """The values that one of several functions of a table takes."""
    return {name: value for name, value in values.items() if name in known}


def _prefix(where: str) -> str:
    return f"{where}." if where else ""

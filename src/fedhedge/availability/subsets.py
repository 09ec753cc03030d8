"""An explicit table of subsets and their probabilities."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedhedge import checks
from fedhedge.availability.table import Table
from fedhedge.checks import InvalidInput


@dataclass(frozen=True, eq=False)
class Subsets(Table):
    """S is one of the listed subsets: `Subsets({(0, 1): 0.7, (2,): 0.3})`.

    `probabilities` maps tuples of client numbers, or strings such as "0,1", to probabilities that sum to 1 within 1e-9;
    the empty tuple (or "") is the empty round. `clients` is N, or None for the highest number listed plus one.
    Raises InvalidInput when a subset is listed twice, names a client that does not exist, or the sum is not 1.
    """

    probabilities: Mapping[Any, float]
    clients: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.probabilities, Mapping) or not self.probabilities:
            raise InvalidInput("probabilities", self.probabilities, "a table of subsets and their probabilities")
        listed: dict[tuple[int, ...], float] = {}
        for subset, probability in self.probabilities.items():
            members = _members(subset)
            if members in listed:
                raise InvalidInput("probabilities", subset, "each subset once", f"{members} is listed twice")
            listed[members] = checks.number(f"probabilities[{subset!r}]", probability, low=0, high=1)
        total = math.fsum(listed.values())
        if abs(total - 1) > 1e-9:
            raise InvalidInput("probabilities", total, "probabilities that sum to 1", "received is their sum")
        if not any(probability for members, probability in listed.items() if members):
            raise InvalidInput(
                "probabilities", dict(listed), "at least one subset that is not empty, with a positive probability"
            )
        needed = 1 + max(max(members, default=-1) for members in listed)
        clients = needed if self.clients is None else checks.integer("clients", self.clients, low=1)
        if clients < needed:
            raise InvalidInput(
                "clients", clients, f"a whole number, {needed} or more", f"client {needed - 1} is listed"
            )
        object.__setattr__(self, "probabilities", {members: listed[members] / total for members in sorted(listed)})
        object.__setattr__(self, "clients", clients)

    def sample(self, rng: np.random.Generator, round: int) -> NDArray[np.bool_]:
        subsets = list(self.probabilities)
        ends = np.cumsum(list(self.probabilities.values()))
        # The last end may fall short of 1 by rounding.
        drawn = min(int(np.searchsorted(ends, rng.random(), side="right")), len(subsets) - 1)
        present = np.zeros(self.count(), dtype=np.bool_)
        present[list(subsets[drawn])] = True
        return present

    def table(self) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        present = np.zeros((len(self.probabilities), self.count()), dtype=np.bool_)
        for row, members in zip(present, self.probabilities, strict=True):
            row[list(members)] = True
        return present, np.array(list(self.probabilities.values()))


def _members(subset: object) -> tuple[int, ...]:
    allowed = 'client numbers such as (0, 1) or "0,1", each once'
    parts: Iterable[Any]
    if isinstance(subset, str):
        try:
            parts = [int(part) for part in subset.split(",")] if subset.strip() else []
        except ValueError:
            raise InvalidInput("subset", subset, allowed) from None
    elif isinstance(subset, tuple | frozenset):
        parts = subset
    else:
        raise InvalidInput("subset", subset, allowed)
    members = sorted(checks.integer(f"client in subset {subset!r}", part, low=0) for part in parts)
    if len(set(members)) < len(members):
        raise InvalidInput("subset", subset, allowed)
    return tuple(members)

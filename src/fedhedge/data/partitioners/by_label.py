"""A few classes for each client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedhedge import checks
from fedhedge.checks import InvalidInput
from fedhedge.data.partitioners.base import Partitioner


@dataclass(frozen=True)
class ByLabel(Partitioner):
    """Each client holds at most `classes_per_client` classes; the rows of a class are dealt evenly to its holders.

    `reserved` gives a client exactly the classes listed (class indices), and these classes to nobody else:
    `ByLabel(clients=30, reserved={27: (8,), 28: (8, 9), 29: (9,)})` is the skewed setting of the FedeRage paper,
    where 27 common clients share classes 0 to 7 and three rare clients hold 8 and 9. The other classes are drawn so
    that the numbers of holders differ by one at most. Raises InvalidInput when a class would have no holder or a
    client no class.
    """

    classes_per_client: int = 2
    reserved: Mapping[int, tuple[int, ...]] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        per_client = checks.integer("classes_per_client", self.classes_per_client, low=1)
        object.__setattr__(self, "classes_per_client", per_client)
        if self.reserved is not None:
            object.__setattr__(self, "reserved", self._reserved(self.reserved))

    def _reserved(self, given: Any) -> dict[int, tuple[int, ...]]:
        if not isinstance(given, Mapping):
            raise InvalidInput("reserved", given, "a table of clients with the classes each is given")
        result: dict[int, tuple[int, ...]] = {}
        for key, classes in given.items():
            # Keys of a TOML table are always text.
            client = int(key) if isinstance(key, str) and key.isdecimal() else key
            client = checks.integer("reserved client", client, low=0, high=self.clients - 1)
            name = f"reserved.{client}"
            if client in result:
                raise InvalidInput(name, given, "each client once")
            allowed = f"1 to {self.classes_per_client} different class indices (classes_per_client)"
            if isinstance(classes, str) or not isinstance(classes, Iterable):
                raise InvalidInput(name, classes, allowed)
            held = tuple(checks.integer(name, label, low=0) for label in classes)
            if len(set(held)) != len(held) or not 1 <= len(held) <= self.classes_per_client:
                raise InvalidInput(name, held, allowed)
            result[client] = held
        return dict(sorted(result.items()))

    def as_dict(self) -> dict[str, Any]:
        """Name and arguments in JSON terms."""
        reserved = {str(client): list(held) for client, held in (self.reserved or {}).items()}
        return {**super().as_dict(), "reserved": reserved}

    def shares(self, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """1/h for the h holders of a class, 0 for the others."""
        holds = self._holders(len(counts), rng)
        shares: np.ndarray = holds / holds.sum(axis=1, keepdims=True)
        return shares

    def _holders(self, classes: int, rng: np.random.Generator) -> np.ndarray:
        """Who holds what, bool[K, N]."""
        if self.classes_per_client > classes:
            allowed = f"a whole number from 1 to {classes}"
            hint = f"the source has {classes} classes"
            raise InvalidInput("classes_per_client", self.classes_per_client, allowed, hint)
        reserved = self.reserved or {}
        taken = sorted({label for held in reserved.values() for label in held})
        if taken and taken[-1] >= classes:
            raise InvalidInput("reserved", taken[-1], f"class indices from 0 to {classes - 1}")
        common = np.setdiff1d(np.arange(classes), taken)
        others = np.setdiff1d(np.arange(self.clients), list(reserved))
        per_client = min(self.classes_per_client, len(common))
        if len(others) and not len(common):
            raise InvalidInput("reserved", dict(reserved), "at least one class left for the clients not listed")
        if len(others) * per_client < len(common):
            hint = f"{len(others)} clients with {per_client} each cannot hold {len(common)} classes"
            allowed = "enough clients or classes_per_client for every class to have a holder"
            raise InvalidInput("classes_per_client", self.classes_per_client, allowed, hint)
        holds = np.zeros((classes, self.clients), bool)
        for client, held in reserved.items():
            holds[list(held), client] = True
        for client in others:
            # Taking the classes with the fewest holders keeps the numbers of holders within one of each other.
            fewest = np.lexsort((rng.random(len(common)), holds[common].sum(axis=1)))
            holds[common[fewest[:per_client]], client] = True
        return holds

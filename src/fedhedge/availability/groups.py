"""Groups of clients that come and go together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedhedge import checks
from fedhedge.availability import products
from fedhedge.availability.base import Law
from fedhedge.checks import InvalidInput


@dataclass(frozen=True, eq=False)
class Groups(Law):
    """All clients of a group get through, or none; `law` says which groups do.

    `groups` lists the clients of each group; every client 0, ..., N - 1 is in exactly one. `law` is any law over the
    groups (its client g is group g): `Independent` for groups that come by chance, `Markov` for groups that stay,
    `FixedSize` for a fixed number of groups. With Z_g = prod_{i in g} z_i and the group law's F_G, F(z) = F_G(Z).
    Raises InvalidInput when a client is in no group or in two, or `law` is for another number of groups.
    """

    groups: Sequence[Sequence[int]]
    law: Law

    def __post_init__(self) -> None:
        if not isinstance(self.groups, Sequence) or isinstance(self.groups, str) or not self.groups:
            raise InvalidInput("groups", self.groups, "lists of client numbers, one list per group")
        groups = tuple(checks.integers(f"groups[{g}]", group, low=0) for g, group in enumerate(self.groups))
        listed = sorted(client for group in groups for client in group)
        if listed != list(range(len(listed))):
            shown = [list(group) for group in groups]
            raise InvalidInput("groups", shown, f"every client from 0 to {len(listed) - 1} in exactly one group")
        if not isinstance(self.law, Law):
            raise InvalidInput("law", self.law, "an availability law over the groups")
        object.__setattr__(self, "groups", groups)
        try:
            object.__setattr__(self, "law", self.law.bind(len(groups)))
        except InvalidInput as error:
            raise error.inside("law") from None

    @property
    def clients(self) -> int:
        return sum(len(group) for group in self.groups)

    @property
    def exact(self) -> bool:
        return self.law.exact

    @property
    def layers(self) -> int:
        return self.law.layers

    def sample(self, rng: np.random.Generator, round: int) -> NDArray[np.bool_]:
        return self.law.sample(rng, round)[self._group_of()]

    def schedule(self, seed: int, start: int, stop: int) -> NDArray[np.bool_]:
        return self.law.schedule(seed, start, stop)[:, self._group_of()]

    def generating(self, z: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        together = np.stack([z[:, list(group)].prod(axis=1) for group in self.groups], axis=1)
        value, outer = self.law.generating(together)
        gradient = np.empty(z.shape, dtype=outer.dtype)
        for g, group in enumerate(self.groups):
            gradient[:, list(group)] = outer[:, g, None] * products.all_but_one(z[:, list(group)])
        return value, gradient

    def largest(self) -> int:
        comes = self.law.inclusion_probabilities() > 0
        sizes = sorted(
            (len(group) for group, possible in zip(self.groups, comes, strict=True) if possible), reverse=True
        )
        return sum(sizes[: self.law.largest()])

    def _group_of(self) -> NDArray[np.intp]:
        group_of = np.empty(self.clients, dtype=np.intp)
        for g, group in enumerate(self.groups):
            group_of[list(group)] = g
        return group_of

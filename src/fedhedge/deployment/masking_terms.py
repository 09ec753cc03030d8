"""What a federation agrees upon about masked sums, and what both sides make of it: sessions, and uploads as vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from fedhedge import checks
from fedhedge.algorithms.base import Tree
from fedhedge.deployment.masking_messages import AGREED, KEYS, LEAST_CLIENTS, MASKED, REVEALED, SHARES, Session
from fedhedge.deployment.parcel import ADVERTISE, AGREE, MASK, SHARE, UNMASK, Rejected
from fedhedge.deployment.programme import Programme
from fedhedge.privacy.noise import FloatArray

# The request that each trip of a session begins with, and the array in which its messages travel.
REQUESTS = {KEYS: ADVERTISE, SHARES: SHARE, MASKED: MASK, AGREED: AGREE, REVEALED: UNMASK}
MESSAGE = "message"


@dataclass(frozen=True)
class Masking:
    """The table [federation.masking]: uploads are added up without the server seeing one, see `masking`.

    threshold: the least number of sites whose uploads a sum may be of, and that have to agree to open it; more than
    half of all sites, and by default the least such number. signed: whether sites sign what the server could otherwise
    forge, for which each needs the others' public keys. Raises InvalidInput.
    """

    threshold: int = None  # type: ignore[assignment]  # resolved by `of`: the default depends on the sites
    signed: bool = True

    def __post_init__(self) -> None:
        checks.boolean("signed", self.signed)

    def of(self, sites: int) -> Masking:
        """The same for so many sites, with the threshold resolved."""
        if sites < LEAST_CLIENTS:
            hint = "the sum of two tells each of them the other's upload"
            raise checks.InvalidInput("masking", f"{sites} sites", f"{LEAST_CLIENTS} sites or more", hint)
        half = sites // 2 + 1
        wanted = half if self.threshold is None else self.threshold
        return replace(self, threshold=checks.integer("masking.threshold", wanted, low=half, high=sites))

    @property
    def needed(self) -> int:
        """Sites without which a round has no sum."""
        return max(LEAST_CLIENTS, self.threshold)

    def session(self, experiment: str, number: Any, attempt: Any, clients: Sequence[str], vector: Vector) -> Session:
        """The session of round `number` between these sites. Raises InvalidInput, also for what is no number."""
        names = tuple(clients)
        return Session(experiment, number, names, vector.length, self.threshold, attempt=attempt, signed=self.signed)


class Vector:
    """An upload [1, ...], with the sums that local steps observe, as one vector, and back."""

    def __init__(self, programme: Programme) -> None:
        self._like, self._names = programme.likes.up, programme.likes.seen
        self._shapes = [leaf.shape for leaf in jax.tree.leaves(self._like)]
        self._ends = np.cumsum([int(np.prod(shape)) for shape in self._shapes]).tolist()
        self.length = (self._ends[-1] if self._ends else 0) + len(self._names)

    def join(self, up: Tree, seen: Mapping[str, float]) -> FloatArray:
        """float64[length]."""
        leaves = [np.asarray(leaf, np.float64).ravel() for leaf in jax.tree.leaves(up)]
        return np.concatenate([*leaves, np.array([seen[name] for name in self._names], np.float64)])

    def split(self, values: FloatArray) -> tuple[Tree, dict[str, float]]:
        """(the upload, the sums) of which `join` made the values."""
        *parts, sums = np.split(values, self._ends)
        leaves, structure = jax.tree.flatten(self._like)
        found = [part.reshape(leaf.shape).astype(leaf.dtype) for part, leaf in zip(parts, leaves, strict=True)]
        return jax.tree.unflatten(structure, found), dict(zip(self._names, sums.tolist(), strict=True))


def to_arrays(message: bytes) -> dict[str, np.ndarray]:
    """A message of a session as a parcel holds it."""
    return {MESSAGE: np.frombuffer(message, np.uint8)}


def from_arrays(arrays: Mapping[str, Any]) -> bytes:
    """The message in a parcel. Raises Rejected."""
    found = arrays.get(MESSAGE)
    if not isinstance(found, np.ndarray) or found.dtype != np.uint8 or found.ndim != 1:
        raise Rejected("no message of a masked sum")
    return found.tobytes()

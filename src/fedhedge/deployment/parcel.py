"""What travels between the coordinator and a site: a kind, plain facts, and named arrays; nothing is ever unpickled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from fedhedge.algorithms.base import Tree
from fedhedge.simulation import checkpoint

# Requests of the coordinator.
ENROL, INQUIRE, WORK, MEASURE, FINISH = "enrol", "inquire", "work", "measure", "finish"
# Those of a masked sum, in place of `WORK`: one for each trip.
ADVERTISE, SHARE, MASK, AGREE, UNMASK = "advertise", "share", "mask", "agree", "unmask"
# Replies of a site.
DONE, REFUSED = "done", "refused"


class Rejected(ValueError):
    """A parcel that cannot be used; the message says why, and goes into the record of the round."""


@dataclass(frozen=True)
class Parcel:
    """One message. kind: what is asked, or how it went. about: JSON-able facts. arrays: leaves of trees by name."""

    kind: str
    about: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)

    def digest(self) -> str:
        """SHA-256 of the arrays, names and shapes included."""
        found = hashlib.sha256()
        for name in sorted(self.arrays):
            array = np.ascontiguousarray(self.arrays[name])
            found.update(json.dumps([name, array.dtype.str, array.shape]).encode())
            found.update(array.tobytes())
        return found.hexdigest()

    def text(self) -> str:
        """The facts as JSON."""
        return json.dumps(dict(self.about), sort_keys=True, allow_nan=False)


def refusal(reason: str, **about: Any) -> Parcel:
    """The reply of a site that does not do what it was asked to."""
    return Parcel(REFUSED, {"reason": reason, **about})


def pack(tree: Tree, prefix: str) -> dict[str, np.ndarray]:
    """The leaves of a tree as named arrays on the host."""
    return checkpoint.flatten(tree, prefix)


def unpack(like: Tree, arrays: Mapping[str, np.ndarray], prefix: str) -> Tree:
    """The tree of the structure of `like` from the arrays whose names start with `prefix`.

    Raises Rejected unless there are exactly the leaves of `like`, with its shapes and kinds of number.
    """
    wanted = checkpoint.flatten(jax.tree.map(_empty, like), prefix)
    given = {name: array for name, array in arrays.items() if name.startswith(prefix)}
    if wanted.keys() != given.keys():
        missing, extra = sorted(wanted.keys() - given.keys()), sorted(given.keys() - wanted.keys())
        raise Rejected(f"arrays missing: {missing}, not expected: {extra}")
    for name, array in given.items():
        if not isinstance(array, np.ndarray) or array.shape != wanted[name].shape:
            raise Rejected(f"{name} has shape {np.shape(array)}, not {wanted[name].shape}")
        if array.dtype != wanted[name].dtype:
            raise Rejected(f"{name} is of type {array.dtype}, not {wanted[name].dtype}")
    return checkpoint.restore(like, given, prefix)


def check_numbers(tree: Tree, largest: float) -> None:
    """Raises Rejected unless all numbers are finite and their l2 norm, as one vector, is at most `largest`."""
    squares = 0.0
    for leaf in jax.tree.leaves(tree):
        values = np.asarray(leaf)
        if values.dtype.kind != "f":
            continue
        if not np.isfinite(values).all():
            raise Rejected("not finite")
        with np.errstate(over="ignore"):
            squares += float(np.sum(values.astype(np.float64) ** 2))
    if not squares <= largest**2:
        raise Rejected(f"norm {squares**0.5:.3g}, above {largest:.3g}")


def _empty(leaf: Any) -> np.ndarray:
    """An array of a leaf's shape and type that takes no memory."""
    return np.broadcast_to(np.zeros((), leaf.dtype), leaf.shape)

"""From who gets through in which round to slots of a cohort."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from fedhedge.simulation.rounds import Schedule


class Table(NamedTuple):
    """Who gets through in `length` rounds, in E entries: client clients[e] in round rows[e], counted from the first.

    Entries are in ascending order of round, then client. sizes: entries of each round [length]. lost, forgets: whose
    upload is lost, who forgets its state, bool[E]; None: nobody ever.
    """

    length: int
    sizes: np.ndarray
    rows: np.ndarray
    clients: np.ndarray
    lost: np.ndarray | None = None
    forgets: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        cohorts: Sequence[np.ndarray],
        faults: tuple[np.ndarray | None, np.ndarray | None] = (None, None),
    ) -> Table:
        """The table of rounds whose clients are given, one array for each."""
        sizes = np.array([len(cohort) for cohort in cohorts], np.int64)
        rows = np.repeat(np.arange(len(sizes)), sizes)
        return cls(len(sizes), sizes, rows, np.concatenate([*cohorts, np.zeros(0, np.int64)]), *faults)

    @property
    def slots(self) -> np.ndarray:
        """Each entry's place in its round, [E]."""
        starts = np.cumsum(self.sizes) - self.sizes
        return np.asarray(np.arange(len(self.rows)) - np.repeat(starts, self.sizes))


def compact(table: Table, first: int, capacity: int, width: int, mass: np.ndarray, steps: np.ndarray) -> Schedule:
    """Rounds `first`, `first` + 1, ... with their clients in ascending order, padded to `capacity` rounds.

    width: slots of a cohort. mass: [N], aggregation weights before they are normalised over the cohort. steps: [N],
    local steps.
    """
    rows, who, slot = table.rows, table.clients, table.slots
    total = np.bincount(rows, weights=mass[who], minlength=table.length)

    def placed(values: np.ndarray, empty: float, kind: type) -> np.ndarray:
        found: np.ndarray = np.full((capacity, width), empty, kind)
        found[rows, slot] = values
        return found

    clients = placed(who, len(mass), np.int32)
    weights = placed(mass[who] / total[rows], 0.0, np.float64)
    shares = placed(mass[who] / mass.sum(), 0.0, np.float64)
    work = placed(steps[who], 0, np.int32)
    number = first + np.arange(capacity, dtype=np.int32)
    faults = [None if f is None else jnp.asarray(placed(f, False, np.bool_)) for f in (table.lost, table.forgets)]
    return Schedule(*(jnp.asarray(array) for array in (clients, weights, shares, work, number)), *faults)

"""From who gets through, as a table of booleans, to slots of a cohort."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fedhedge.simulation.rounds import Schedule


class Table(NamedTuple):
    """Rounds and clients, bool[R, N]: who gets through, whose upload is lost, who forgets its state (None: never)."""

    present: np.ndarray
    lost: np.ndarray | None = None
    forgets: np.ndarray | None = None


def compact(table: Table, first: int, capacity: int, width: int, mass: np.ndarray, steps: np.ndarray) -> Schedule:
    """Rounds `first`, `first` + 1, ... with their clients in ascending order, padded to `capacity` rounds.

    width: slots of a cohort. mass: [N], aggregation weights before they are normalised over the cohort. steps: [N],
    local steps.
    """
    present = table.present
    population = present.shape[1]
    sizes = present.sum(axis=1)
    clients = np.full((capacity, width), population, np.int32)
    weights = np.zeros((capacity, width))
    shares = np.zeros((capacity, width))
    work = np.zeros((capacity, width), np.int32)
    rows, who = np.nonzero(present)
    slot = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    clients[rows, slot] = who
    weights[rows, slot] = mass[who] / (present @ mass)[rows]
    shares[rows, slot] = (mass / mass.sum())[who]
    work[rows, slot] = steps[who]
    number = first + np.arange(capacity, dtype=np.int32)
    faults = []
    for fault in (table.lost, table.forgets):
        hit = np.zeros((capacity, width), np.bool_)
        if fault is not None:
            hit[rows, slot] = fault[rows, who]
        faults.append(None if fault is None else jnp.asarray(hit))
    return Schedule(*(jnp.asarray(array) for array in (clients, weights, shares, work, number)), *faults)


def scatter(clients: jax.Array, chosen: jax.Array, shape: tuple[int, ...]) -> np.ndarray:
    """Slots [R', S] of the first R rounds as a table bool[R, N]: who sits in a chosen slot."""
    table = np.zeros(shape, np.bool_)
    rows, slots = np.nonzero(np.asarray(chosen)[: shape[0]])
    table[rows, np.asarray(clients)[rows, slots]] = True
    return table

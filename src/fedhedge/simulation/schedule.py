"""From who gets through, as a table of booleans, to slots of a cohort."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from fedhedge.simulation.rounds import Schedule


def compact(
    present: np.ndarray, first: int, capacity: int, width: int, mass: np.ndarray, steps: np.ndarray
) -> Schedule:
    """Rounds `first`, `first` + 1, ... with their clients in ascending order, padded to `capacity` rounds.

    present: bool[R, N]. width: slots of a cohort. mass: [N], aggregation weights before they are normalised over the
    cohort. steps: [N], local steps.
    """
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
    return Schedule(*(jnp.asarray(array) for array in (clients, weights, shares, work, number)))

"""Random streams derived from one root seed by (purpose, client, round); no global generator is touched."""

from __future__ import annotations

import functools
from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from fedhedge import checks

if TYPE_CHECKING:
    import jax


class Purpose(IntEnum):
    """What a stream is for; the numbers are part of every result, so they never change."""

    PARTITION = 0
    INIT = 1
    AVAILABILITY = 2
    BATCHES = 3
    NOISE = 4
    SOURCE = 5
    MONTE_CARLO = 6
    SERVER = 7
    FAULTS = 8


def generator(seed: int, purpose: Purpose, client: int | None = None, round: int | None = None) -> np.random.Generator:
    """NumPy generator of the stream (purpose, client, round); None stands for "not tied to one".

    The Philox generator is counter-based, so that streams are independent by construction and cheap to open.
    """
    path = (int(purpose), 0 if client is None else client + 1, 0 if round is None else round + 1)
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=path)))


def key(seed: int, purpose: Purpose) -> jax.Array:
    """JAX key of a purpose; fold in the client and the round with `jax.random.fold_in`."""
    return _folded()(np.uint32(seed), np.uint32(purpose))


@functools.cache
def _folded() -> Callable[[np.uint32, np.uint32], jax.Array]:
    """One compiled call: a sweep of small runs makes four keys for each."""
    import jax

    return jax.jit(lambda seed, purpose: jax.random.fold_in(jax.random.key(seed), purpose))


def check_seed(seed: int) -> int:
    """A root seed: a whole number that fits in 32 bits, so that NumPy and JAX read it alike.

    Raises InvalidInput when it is not.
    """
    return checks.integer("seed", seed, low=0, high=2**32 - 1)

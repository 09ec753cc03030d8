"""What private methods share: rows of bounded norm, noise on what a client releases, and no other way out."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import Algorithm, Batches, Start, Tree, over_cohort
from fedhedge.algorithms.consensus import initial_matrix, one_step
from fedhedge.models.base import Functional
from fedhedge.privacy import Privacy, calibrate
from fedhedge.privacy.calibration import Accounting

Noise = tuple[jax.Array, ...]
# Entries of rows this long, and their products, stay clear of the least doubles.
SMALLEST_BOUND = 1e-100
# A division may be compiled into a product with the reciprocal, which beyond 4e307 is no normal double and counts as 0.
LARGEST_ENTRY = 1e300


class Table(NamedTuple):
    """Rows of one client: features [b, P] with ||x||_2 <= L, labels [b], weights [b] (1/N, 0 for padding), N."""

    features: jax.Array
    labels: jax.Array
    weights: jax.Array
    rows: jax.Array


@dataclasses.dataclass(frozen=True, kw_only=True)
class Private(Algorithm):
    """Base of methods that release Gaussian-perturbed statistics of a client's table, and nothing else of it.

    Neighbouring tables: one row (features and label) of one client is replaced by any other; the number of rows N_g
    is public. The guarantee is each client's own.
    noise: sigma / sensitivity of the release of the model or gradient (no unit), as `fedhedge.privacy.calibrate` gives
    it; 0 adds none, and then nothing is private. row_bound: L, at least 1e-100; rows are scaled down to ||x||_2 <= L
    inside the client, so that the sensitivities hold for any data. Run with local_steps=1 and batch_size=None (all
    rows; with mini-batches of b rows the noise is that of N = b, and nothing is claimed for the sampling).
    Nothing is observed during local work: what would be is not covered by the noise.
    """

    precision = "float64"
    noise: float
    row_bound: float = 1.0

    def __post_init__(self) -> None:
        checks.number("noise", self.noise, low=0.0)
        checks.number("row_bound", self.row_bound, low=SMALLEST_BOUND)

    @classmethod
    def calibrated(cls, privacy: Privacy, rounds: int, *, accounting: Accounting = "exact", **settings: Any) -> Self:
        """The method with the least noise with which `rounds` turns of a client keep to `privacy`.

        settings: the other arguments. Raises InvalidInput, see `fedhedge.privacy.calibrate`.
        """
        return cls(noise=calibrate(privacy, rounds, accounting=accounting).model, **settings)

    @abstractmethod
    def shapes(self, down: Tree) -> tuple[tuple[int, ...], ...]:
        """Shapes of a client's releases in one round, in their order."""

    @abstractmethod
    def deviations(self, down: Tree, client: Tree, rows: jax.Array) -> Noise:
        """sigma of each release of a client with N = `rows` rows, in the unit of the release."""

    @abstractmethod
    def turn(self, down: Tree, client: Tree, table: Table, noise: Noise) -> tuple[Tree, Tree]:
        """(upload, new client state) of one client, given the noise on each release."""

    def gradient_deviation(self, rows: jax.Array) -> jax.Array:
        """sigma on each entry of a client's mean subgradient: noise times the sensitivity 2 sqrt(2) L / N."""
        return self.noise * (2.0 * math.sqrt(2.0)) * self.row_bound / rows

    def local(
        self, model: Functional, down: Tree, clients: Tree, batches: Batches, keys: jax.Array
    ) -> tuple[Tree, Tree, dict[str, jax.Array]]:
        deviations = jax.vmap(self.deviations, (None, 0, 0))(down, clients, _row_counts(batches))
        return self.local_with(down, clients, batches, _seeded(keys, deviations, self.shapes(down)))

    def local_with(
        self, down: Tree, clients: Tree, batches: Batches, noise: Noise
    ) -> tuple[Tree, Tree, dict[str, jax.Array]]:
        """`local` with noise from elsewhere: one array [S, ...] per release, of the deviations that `deviations` gives.

        This is where a real federation brings in noise from the operating system's entropy.
        """
        one_step(batches)
        # Of all rows in the pool, which never change: a compiled loop does it once, not in every round.
        shares = _within(batches.features, self.row_bound)

        def work(client: Tree, index: jax.Array, present: jax.Array | None, noise: Noise) -> Any:
            rows = index[0]
            here = jnp.ones(len(rows)) if present is None else present[0] * 1.0
            count = jnp.sum(here)
            features = _flat(batches.features[rows]) * shares[rows]
            return *self.turn(down, client, Table(features, batches.labels[rows], here / count, count), noise), {}

        arguments = (clients, batches.index, batches.present, noise)
        return over_cohort(work, arguments, batches.steps > 0, batches.layout)  # type: ignore[no-any-return]

    def init_server(self, start: Start) -> Tree:
        return initial_matrix(start)

    def broadcast(self, server: Tree) -> Tree:
        return server


def _flat(features: jax.Array) -> jax.Array:
    """Rows as vectors, with no entry beyond LARGEST_ENTRY."""
    return jnp.clip(features.reshape(len(features), -1), -LARGEST_ENTRY, LARGEST_ENTRY)


def _within(features: jax.Array, row_bound: float | jax.Array) -> jax.Array:
    """min(1, L/||x||_2) of each row of `_flat`, shape [n, 1]: what scales it down to length L."""
    flat = _flat(features)
    # In units of the largest entry, whose square may leave the doubles.
    largest = jnp.max(jnp.abs(flat), axis=1, keepdims=True)
    unit = jnp.where(largest > 0, largest, 1.0)
    length = unit * jnp.sqrt(jnp.sum((flat / unit) ** 2, axis=1, keepdims=True))
    return row_bound / jnp.maximum(length, row_bound)


def _row_counts(batches: Batches) -> jax.Array:
    slots, _, width = batches.index.shape
    return jnp.full(slots, float(width)) if batches.present is None else jnp.sum(batches.present[:, 0], axis=1) * 1.0


def _seeded(keys: jax.Array, deviations: Noise, shapes: tuple[tuple[int, ...], ...]) -> Noise:
    """Reproducible noise for simulation; each release of a client has its own stream within the client's round."""

    def release(number: int, deviation: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        def draw(key: jax.Array, sigma: jax.Array) -> jax.Array:
            return sigma * jax.random.normal(jax.random.fold_in(key, number), shape)

        return jax.vmap(draw)(keys, deviation)

    return tuple(release(number, *release_of) for number, release_of in enumerate(zip(deviations, shapes, strict=True)))

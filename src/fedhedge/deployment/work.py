"""A site's share of a round: the method's `probe` and `local` on a cohort of one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from fedhedge.algorithms.base import Algorithm, Batches, Tree
from fedhedge.algorithms.private import Private
from fedhedge.deployment.grid_noise import GridNoise
from fedhedge.deployment.programme import Programme
from fedhedge.deployment.sampler import granularity, scale_after_rounding
from fedhedge.estimators.statements import releases
from fedhedge.models import Functional
from fedhedge.privacy import Release
from fedhedge.simulation.arithmetic import arithmetic
from fedhedge.simulation.batches import draw
from fedhedge.simulation.rounds import PROBE

Part = Callable[..., Any]


class Gaussian(Protocol):
    """Noise from the operating system's entropy: float64 of a shape, entries N(0, scale^2)."""

    def __call__(self, shape: tuple[int, ...], scale: float) -> np.ndarray: ...


class Worker:
    """One site's rows and what is computed on them.

    number: the site's place among the clients. features, labels: its training rows. gaussian: the noise of private
    methods, which replaces the seeded noise of simulation.
    """

    def __init__(
        self, programme: Programme, number: int, features: np.ndarray, labels: np.ndarray, gaussian: Gaussian
    ) -> None:
        self.programme, self.number, self.gaussian = programme, number, gaussian
        self.algorithm, self.plan = programme.algorithm, programme.plan(len(labels))
        with arithmetic(self.algorithm.precision):
            self.pool = programme.pool(features, labels)
        parts = _COMPILED if self.algorithm.traceable else _PLAIN
        self._probe, self._local, self._local_with = parts

    @property
    def rows_in_a_step(self) -> int:
        """Rows behind each release of a private method."""
        return min(self.plan.widest, self.plan.batch_size or self.plan.widest)

    def initial(self) -> Tree:
        """The client state before the first round, [1, ...]."""
        likes = self.programme.likes
        with arithmetic(self.algorithm.precision):
            states = self.programme.initial_states(likes.server)
            return jax.tree.map(lambda leaf: leaf[self.number : self.number + 1], states)

    def probe(self, inquiry: Tree, state: Tree, number: int) -> Tree:
        """The report [1, ...] of round `number` on all training rows."""
        with arithmetic(self.algorithm.precision):
            key = jax.random.fold_in(self._key(number), PROBE)
            batches = self._batches(self.number, 1, None, masked=True)
            return self._probe(self.plan.model, self.algorithm, inquiry, state, batches, key[None])

    def prepare(self, state: Tree, report: Tree) -> Tree:
        """The state with which local work begins after that report."""
        with arithmetic(self.algorithm.precision):
            return self.algorithm.prepare(state, report)

    def local(self, down: Tree, state: Tree, number: int) -> tuple[Tree, Tree, dict[str, float]]:
        """(upload [1, ...], new state [1, ...], sums over local steps) of round `number`."""
        algorithm = self.algorithm
        with arithmetic(algorithm.precision):
            batches = self._batches(number, self.plan.steps, self.plan.batch_size, masked=self.plan.ragged)
            if isinstance(algorithm, Private) and algorithm.noise > 0.0:
                noise = self._noise(algorithm, down, state)
                up, fresh, seen = self._local_with(self.plan.model, algorithm, down, state, batches, noise)
            else:
                up, fresh, seen = self._local(self.plan.model, algorithm, down, state, batches, self._key(number)[None])
            return up, fresh, {name: float(jnp.sum(value)) for name, value in seen.items()}

    def _noise(self, algorithm: Private, down: Tree, state: Tree) -> tuple[Any, ...]:
        rows = jnp.asarray([float(self.rows_in_a_step)])
        deviations = jax.vmap(algorithm.deviations, (None, 0, 0))(down, state, rows)
        return tuple(
            self._grid_noise(shape, float(deviation[0]), release)
            for deviation, shape, release in zip(
                deviations, algorithm.shapes(down), releases(algorithm, self.rows_in_a_step), strict=True
            )
        )

    def _grid_noise(self, shape: tuple[int, ...], deviation: float, release: Release) -> Any:
        """Noise on one release; rounding to the grid costs a little more of it, never privacy."""
        if release.sensitivity == 0.0:
            return jnp.zeros((1, *shape))
        scale = scale_after_rounding(deviation, 1.0 / release.mu, math.prod(shape))
        drawn = jnp.asarray(self.gaussian(shape, scale))
        return GridNoise(drawn[None], jnp.asarray([granularity(scale)]))

    def _batches(self, number: int, steps: int, size: int | None, *, masked: bool) -> Batches:
        """The rows of each local step, the same that a simulation of these settings draws."""
        slot = jnp.asarray([self.number], jnp.int32)
        at = jnp.asarray([number], jnp.int32)
        keys, plan = self.programme.keys, self.plan
        rows, present = draw(keys.batches, self.pool, slot, at, steps, size, plan.widest)
        own = jnp.asarray(self.programme.steps[[self.number]], jnp.int32)
        uniform = plan.uniform_steps or steps == 1
        return Batches(
            self.pool.features, self.pool.labels, rows, present if masked else None, own, uniform, plan.layout
        )

    def _key(self, number: int) -> jax.Array:
        return jax.random.fold_in(jax.random.fold_in(self.programme.keys.noise, self.number), number)


def _probe(model: Functional, method: Algorithm, *arguments: Any) -> Tree:
    return method.probe(model, *arguments)


def _local(model: Functional, method: Algorithm, *arguments: Any) -> tuple[Tree, Tree, dict[str, jax.Array]]:
    return method.local(model, *arguments)


def _local_with(model: Functional, method: Private, *arguments: Any) -> tuple[Tree, Tree, dict[str, jax.Array]]:
    return method.local_with(*arguments)


_PLAIN: tuple[Part, Part, Part] = (_probe, _local, _local_with)
_COMPILED: tuple[Part, Part, Part] = tuple(jax.jit(part, static_argnames=("model",)) for part in _PLAIN)  # type: ignore[assignment]

"""Noise that brings along the grid on which floating-point numbers give nothing away."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GridNoise:
    """Noise in multiples of a spacing; what it is added to is rounded to that grid first, as `sampler` asks for.

    A private method writes `value + noise` and `value - noise` for its releases; with this in place of an array the
    release is round(value) +- noise. noise: float64, of the release's shape. spacing: a power of two, a scalar. A value
    of 2^52 spacings or more, for which doubles have no room, becomes NaN, and the site then sends nothing.
    """

    noise: jax.Array
    spacing: jax.Array

    def __radd__(self, value: jax.Array) -> jax.Array:
        return self._rounded(value) + self.noise

    def __rsub__(self, value: jax.Array) -> jax.Array:
        return self._rounded(value) - self.noise

    def _rounded(self, value: jax.Array) -> jax.Array:
        steps = jnp.floor(value / self.spacing + 0.5)
        return jnp.where(jnp.abs(steps) < 2.0**52, steps * self.spacing, jnp.nan)

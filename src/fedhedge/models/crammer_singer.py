"""Multiclass support vector machine: a linear K x P matrix under the Crammer-Singer loss."""

from __future__ import annotations

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp

from fedhedge.models.base import Architecture, Functional, Tree, flat


@dataclasses.dataclass(frozen=True)
class CrammerSinger(Architecture):
    """Linear scores M x with M [K, P], starting at 0, under max(0, 1 + max_{k != y} m_k.x - m_y.x); convex.

    There is no intercept: append a constant feature to have one. Source: Crammer and Singer 2001.
    """

    def fit_shape(self, feature_shape: tuple[int, ...], classes: int) -> Functional:
        return _build(math.prod(feature_shape), classes)


@functools.cache
def _build(features: int, classes: int) -> Functional:
    def init(key: jax.Array) -> Tree:
        return jnp.zeros((classes, features))

    def scores(coef: Tree, x: jax.Array) -> jax.Array:
        return flat(x) @ coef.T  # type: ignore[no-any-return]

    def loss(coef: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
        values = scores(coef, x)
        own = jnp.arange(classes) == y[:, None]
        rival = jnp.max(jnp.where(own, -jnp.inf, values), axis=1)
        return jnp.maximum(0.0, 1.0 + rival - jnp.sum(jnp.where(own, values, 0.0), axis=1))

    def predict(coef: Tree, x: jax.Array) -> jax.Array:
        return jnp.argmax(scores(coef, x), axis=1)

    return Functional(init, loss, predict, convex=True)

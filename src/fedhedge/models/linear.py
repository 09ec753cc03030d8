"""Softmax regression."""

from __future__ import annotations

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.models.base import Architecture, Functional, Tree, classifier, flat


@dataclasses.dataclass(frozen=True)
class Linear(Architecture):
    """Softmax regression, scores x W + b, a convex model; features are flattened, parameters start at 0.

    intercept: whether there is a b. Raises InvalidInput when it is not a boolean.
    """

    intercept: bool = True

    def __post_init__(self) -> None:
        checks.boolean("intercept", self.intercept)

    def fit_shape(self, feature_shape: tuple[int, ...], classes: int) -> Functional:
        return _build(math.prod(feature_shape), classes, self.intercept)


@functools.cache
def _build(features: int, classes: int, intercept: bool) -> Functional:
    def init(key: jax.Array) -> Tree:
        params = {"weight": jnp.zeros((features, classes))}
        return params | {"bias": jnp.zeros(classes)} if intercept else params

    def scores(params: Tree, x: jax.Array) -> jax.Array:
        values: jax.Array = flat(x) @ params["weight"]
        return values + params["bias"] if intercept else values

    return classifier(init, scores, convex=True)

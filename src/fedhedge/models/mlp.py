"""Multilayer perceptron."""

from __future__ import annotations

import dataclasses
import functools
import math

import jax

from fedhedge import checks
from fedhedge.models.base import Architecture, Functional, Tree, classifier, flat, he_normal


@dataclasses.dataclass(frozen=True)
class MLP(Architecture):
    """Fully connected ReLU network with softmax output; features are flattened.

    hidden: widths of the hidden layers. Weights start He-normal, biases at 0. Raises InvalidInput for a width below 1.
    """

    hidden: tuple[int, ...] = (200,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", checks.integers("hidden", self.hidden, low=1))

    def fit_shape(self, feature_shape: tuple[int, ...], classes: int) -> Functional:
        return _build((math.prod(feature_shape), *self.hidden, classes))


@functools.cache
def _build(widths: tuple[int, ...]) -> Functional:
    layers = len(widths) - 1

    def init(key: jax.Array) -> Tree:
        keys = jax.random.split(key, layers)
        return {f"layer{i}": dense_init(keys[i], widths[i], widths[i + 1]) for i in range(layers)}

    def scores(params: Tree, x: jax.Array) -> jax.Array:
        x = flat(x)
        for i in range(layers - 1):
            x = jax.nn.relu(dense(params[f"layer{i}"], x))
        return dense(params[f"layer{layers - 1}"], x)

    return classifier(init, scores)


def dense_init(key: jax.Array, fan_in: int, fan_out: int) -> Tree:
    """Parameters of a fully connected layer."""
    return {"weight": he_normal(key, (fan_in, fan_out)), "bias": jax.numpy.zeros(fan_out)}


def dense(params: Tree, x: jax.Array) -> jax.Array:
    """Fully connected layer: x [b, fan_in] to [b, fan_out]."""
    return x @ params["weight"] + params["bias"]  # type: ignore[no-any-return]

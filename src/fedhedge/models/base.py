"""A model is a set of pure functions; the architectures of this room build one for a feature shape and classes."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from fedhedge import checks

Tree = Any


@dataclasses.dataclass(frozen=True)
class Functional:
    """A model as the functions that learning needs; bring your own, or let an architecture build one.

    init(key) -> params, a pytree of arrays. loss(params, x, y) -> losses [b], one per row, for features x [b, ...]
    and labels y [b]. predict(params, x) -> predictions [b] (class indices for a classifier), or None: then no
    accuracy is reported. convex: whether the loss is convex in params. convolutional: whether it has convolutions
    (on a CPU these run as straight-line code). Two Functionals of the same functions share one compilation.
    """

    init: Callable[[jax.Array], Tree]
    loss: Callable[[Tree, jax.Array, jax.Array], jax.Array]
    predict: Callable[[Tree, jax.Array], jax.Array] | None = None
    convex: bool = False
    convolutional: bool = False

    def build(self, feature_shape: tuple[int, ...], classes: int) -> Functional:
        """The model itself: functions that a user brings already fit their data."""
        return self

    def settings(self) -> dict[str, Any]:
        """Names of the functions, for summaries and fingerprints."""
        return {"name": "Functional", "loss": getattr(self.loss, "__qualname__", repr(self.loss))}


class Architecture(ABC):
    """A family of classifiers: `build` fits it to a feature shape and a number of classes."""

    def build(self, feature_shape: tuple[int, ...], classes: int) -> Functional:
        """The functions for features of `feature_shape` and `classes` classes; equal arguments give the same object.

        Raises InvalidInput when there are fewer than two classes, or the features do not suit the architecture.
        """
        if classes < 2:
            raise checks.InvalidInput("classes", classes, f"2 or more: {type(self).__name__} is a classifier")
        return self.fit_shape(feature_shape, classes)

    @abstractmethod
    def fit_shape(self, feature_shape: tuple[int, ...], classes: int) -> Functional:
        """What `build` returns once the number of classes is known to be good."""

    def settings(self) -> dict[str, Any]:
        """Name and arguments as plain values, for summaries and fingerprints."""
        return {"name": type(self).__name__} | vars(self)


def classifier(
    init: Callable[[jax.Array], Tree],
    scores: Callable[[Tree, jax.Array], jax.Array],
    *,
    convex: bool = False,
    convolutional: bool = False,
) -> Functional:
    """Softmax classifier from a score function [b, K]: loss -log softmax(scores)[y], prediction argmax."""

    def loss(params: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
        values = scores(params, x)
        picked = jnp.take_along_axis(values, y[:, None], axis=1)[:, 0]
        return jax.nn.logsumexp(values, axis=1) - picked

    def predict(params: Tree, x: jax.Array) -> jax.Array:
        return jnp.argmax(scores(params, x), axis=1)

    return Functional(init, loss, predict, convex, convolutional)


def he_normal(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Normal weights of variance 2/fan-in (He et al. 2015, eq. 10); the last axis is the output."""
    fan_in = 1
    for extent in shape[:-1]:
        fan_in *= extent
    return jax.random.normal(key, shape) * jnp.sqrt(2.0 / fan_in)

"""A model is a set of pure functions; the architectures of this room build one for a feature shape and classes."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
import types
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

    def check(self, features: jax.Array, labels: jax.Array) -> None:
        """Raises InvalidInput unless the functions fit together and rows like these; nothing is computed."""
        _check(self, *((rows.shape[1:], rows.dtype) for rows in (features, labels)))

    def settings(self) -> dict[str, Any]:
        """Names of the functions and digests of their code, for summaries and fingerprints.

        A digest covers the code, its constants and defaults and the plain values it closes over, not the arrays.
        """
        parts = {"init": self.init, "loss": self.loss, "predict": self.predict}
        named = {key: getattr(part, "__qualname__", repr(part)) for key, part in parts.items() if part is not None}
        return {"name": "Functional", "code": {key: _digest(part) for key, part in parts.items() if part}, **named}


@functools.lru_cache(maxsize=64)
def _check(model: Functional, *rows: tuple[tuple[int, ...], Any]) -> None:
    """`Functional.check` on three rows of each kind (shape, dtype), once for many runs of one model."""
    features, labels = (jax.eval_shape(lambda kind=kind: jnp.zeros((3, *kind[0]), kind[1])) for kind in rows)
    params = jax.eval_shape(model.init, jax.random.key(0))
    leaves = jax.tree.leaves(params)
    if not leaves or not all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves):
        kinds = sorted({str(leaf.dtype) for leaf in leaves}) or "no arrays"
        raise checks.InvalidInput("model.init", kinds, "a tree of floating-point arrays")
    found = jax.eval_shape(model.loss, params, features, labels)
    if not _is_column(found, len(labels)) or not jnp.issubdtype(found.dtype, jnp.floating):
        raise checks.InvalidInput("model.loss", found, f"floating-point losses [{len(labels)}], one for each row")
    if model.predict is not None:
        found = jax.eval_shape(model.predict, params, features)
        if not _is_column(found, len(labels)):
            raise checks.InvalidInput("model.predict", found, f"predictions [{len(labels)}], one for each row")


def _digest(function: Callable[..., Any]) -> str:
    def described(value: Any) -> Any:
        if isinstance(value, types.CodeType):
            return [value.co_code.hex(), value.co_names, [described(constant) for constant in value.co_consts]]
        if isinstance(value, types.FunctionType):
            held = [cell.cell_contents for cell in value.__closure__ or ()]
            return [described(part) for part in (value.__code__, value.__defaults__, held)]
        if isinstance(value, list | tuple):
            return [described(part) for part in value]
        return repr(value) if isinstance(value, str | bytes | int | float | None) else type(value).__qualname__

    return hashlib.sha256(repr(described(function)).encode()).hexdigest()[:16]


def _is_column(found: Any, rows: int) -> bool:
    return isinstance(found, jax.ShapeDtypeStruct) and found.shape == (rows,)


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


def flat(x: jax.Array) -> jax.Array:
    """Rows of any shape as vectors [b, P]; also for no rows at all."""
    return x.reshape(x.shape[0], math.prod(x.shape[1:]))


def he_normal(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Normal weights of variance 2/fan-in (He et al. 2015, eq. 10); the last axis is the output."""
    fan_in = 1
    for extent in shape[:-1]:
        fan_in *= extent
    return jax.random.normal(key, shape) * jnp.sqrt(2.0 / fan_in)

"""Small convolutional network."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.models.base import Architecture, Functional, Tree, classifier, he_normal
from fedhedge.models.mlp import dense, dense_init

KERNEL = 3


@dataclasses.dataclass(frozen=True)
class CNN(Architecture):
    """Blocks of 3x3 convolution, ReLU and 2x2 max-pooling, then one hidden layer and a softmax output.

    channels: output channels of each block. hidden: width of the hidden layer. Features are images [H, W, C].
    Raises InvalidInput for a width below 1, features that are no images, or images too small for the blocks.
    """

    channels: tuple[int, ...] = (32, 64)
    hidden: int = 128

    def __post_init__(self) -> None:
        object.__setattr__(self, "channels", checks.integers("channels", self.channels, low=1))
        checks.integer("hidden", self.hidden, low=1)

    def fit_shape(self, feature_shape: tuple[int, ...], classes: int) -> Functional:
        smallest = 2 ** len(self.channels)
        if len(feature_shape) != 3 or min(feature_shape[:2]) < smallest:
            allowed = f"images [height, width, channels] of at least {smallest} x {smallest} pixels"
            raise checks.InvalidInput("features", feature_shape, allowed, "shape of a row")
        return _build(feature_shape, self.channels, self.hidden, classes)


@functools.cache
def _build(shape: tuple[int, ...], channels: tuple[int, ...], hidden: int, classes: int) -> Functional:
    inputs = (shape[2], *channels)
    shrink = 2 ** len(channels)
    flat = (shape[0] // shrink) * (shape[1] // shrink) * channels[-1]

    def init(key: jax.Array) -> Tree:
        keys = jax.random.split(key, len(channels) + 2)
        params = {
            f"block{i}": {
                "kernel": he_normal(keys[i], (KERNEL, KERNEL, inputs[i], inputs[i + 1])),
                "bias": jnp.zeros(inputs[i + 1]),
            }
            for i in range(len(channels))
        }
        return params | {
            "hidden": dense_init(keys[-2], flat, hidden),
            "output": dense_init(keys[-1], hidden, classes),
        }

    def scores(params: Tree, x: jax.Array) -> jax.Array:
        for i in range(len(channels)):
            block = params[f"block{i}"]
            x = max_pool(jax.nn.relu(convolve(x, block["kernel"]) + block["bias"]))
        x = jax.nn.relu(dense(params["hidden"], x.reshape(x.shape[0], -1)))
        return dense(params["output"], x)

    return classifier(init, scores, convolutional=True)


def convolve(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """Same-size 2-D convolution of x [b, H, W, C] with kernel [k, k, C, D]."""
    layout = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=layout)


def max_pool(x: jax.Array) -> jax.Array:
    """2x2 max-pooling of x [b, H, W, C]; an odd last row or column is dropped."""
    b, height, width, c = x.shape
    x = x[:, : height // 2 * 2, : width // 2 * 2]
    # The gradient of a maximum over a reshaped axis is far cheaper on a CPU than that of a windowed reduction.
    return x.reshape(b, height // 2, 2, width // 2, 2, c).max(axis=(2, 4))

"""The work that contenders share, so that all do the same. Only NumPy: each peer lives in an environment of its own.

W1: an MLP 784-200-200-10, 30 clients with 2,000 rows each, of whom 3 train in a round: 5 local steps of plain SGD on
mini-batches of 32, then the mean of their models. W2: the same rounds with a small CNN on images of CIFAR-10's shape.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

CLIENTS, COHORT, STEPS, BATCH = 30, 3, 5, 32
CLASSES = 10


@dataclass(frozen=True)
class Work:
    """shape: of a row. rows: of a client. widths: of the fully connected layers. channels: of convolutions before.

    separation: deviation of the class means, in units of a feature's own.
    """

    shape: tuple[int, ...]
    rows: int
    widths: tuple[int, ...]
    channels: tuple[int, ...] = ()
    step_size: float = 0.1
    separation: float = 0.1


MLP = Work((784,), 2000, (784, 200, 200, CLASSES))
CNN = Work((32, 32, 3), 200, (8 * 8 * 64, 128, CLASSES), channels=(32, 64), step_size=0.03, separation=0.5)
WORKS = {"mlp": MLP, "cnn": CNN}
# Forward pass, and two products of the same size backward, except that the first layer needs no gradient of its input.
FLOPS = COHORT * STEPS * BATCH * 2 * (3 * sum(a * b for a, b in itertools.pairwise(MLP.widths)) - 784 * 200)


def table(work: Work) -> tuple[np.ndarray, np.ndarray]:
    """Features float32[n, ...] and labels int64[n], client after client: Gaussian classes that overlap a little."""
    rng = np.random.default_rng(0)
    labels = rng.integers(CLASSES, size=CLIENTS * work.rows)
    means = work.separation * rng.standard_normal((CLASSES, *work.shape), np.float32)
    features = rng.standard_normal((len(labels), *work.shape), np.float32)
    features += means[labels]
    return features, labels


def batch(rng: np.random.Generator, work: Work, client: int) -> np.ndarray:
    """Row numbers of one mini-batch, drawn without replacement."""
    return client * work.rows + rng.choice(work.rows, BATCH, replace=False)


def cohorts(rng: np.random.Generator, rounds: int) -> list[np.ndarray]:
    """Who trains in each round."""
    return [rng.choice(CLIENTS, COHORT, replace=False) for _ in range(rounds)]

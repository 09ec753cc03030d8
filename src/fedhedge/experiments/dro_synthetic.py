"""Synthetic problems for the second paper's figures: Gaussian classes, spread in space or along an arc."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedhedge import streams
from fedhedge.data import Clients
from fedhedge.experiments.tables_data import Floats, Labels, Problem, Split
from fedhedge.streams import Purpose

TEST_ROWS = 2000


@dataclass(frozen=True)
class Spread:
    """Gaussian classes round random points of a sphere: nothing special about any of them.

    clients hold `rows` rows each, the share `dominant` of one class, g mod K for client g, and of the others alike;
    means have norm 1 and every feature the standard deviation `deviation`, before rows are scaled by 1/2 and shortened
    to norm 1. Test rows have all classes alike.
    """

    clients: int
    rows: int
    classes: int
    features: int = 10
    deviation: float = 0.35
    dominant: float = 0.7
    flipped: float = 0.1

    def split(self, seed: int) -> Split:
        """Clients, and test rows whose labels are right."""
        rng = streams.generator(streams.check_seed(seed), Purpose.SOURCE)
        means = rng.standard_normal((self.classes, self.features))
        means /= np.linalg.norm(means, axis=1, keepdims=True)

        def draw(labels: Labels) -> Floats:
            return np.asarray(means[labels] + self.deviation * rng.standard_normal((len(labels), self.features)))

        client, place = np.divmod(np.arange(self.clients * self.rows, dtype=np.int32), np.int32(self.rows))
        y = np.where(place < round(self.dominant * self.rows), client, place) % self.classes
        labels = np.arange(TEST_ROWS, dtype=np.int32) % self.classes
        X, tested = draw(y), draw(labels)
        y = flip(y, client, self.flipped, self.classes, rng)
        return Split(_clients(shortened(X / 2.0), y, client, self.classes), shortened(tested / 2.0), labels)


@dataclass(frozen=True)
class Arc:
    """Gaussian classes whose means lie along a line, a ring, or an arc between; neighbours are at distance 1.

    bend: 0 for a line, on which the classes inside are not linearly separable from the rest; 1 for a regular polygon,
    where each class is. overlap: standard deviation of both features. correlation: between them, within classes. A
    constant third feature stands for intercepts. Rows are scaled by a fixed number, so that hardly one is longer than
    1, and shortened to norm 1. Of each class, four clients have the shares (.4, .3, .2, .1)[(g + c) mod 4].
    """

    classes: int
    bend: float
    overlap: float
    correlation: float = 0.0
    flipped: float = 0.0
    per_class: int = 40

    def means(self) -> Floats:
        """Means of the classes, [K, 2], round the origin."""
        place = np.arange(self.classes) - (self.classes - 1) / 2
        step = self.bend * 2.0 * math.pi / self.classes
        if step == 0.0:
            return np.stack([place, np.zeros(self.classes)], axis=1)
        radius = 0.5 / math.sin(step / 2.0)
        means: Floats = radius * np.stack([np.sin(place * step), np.cos(place * step)], axis=1)
        return np.asarray(means - means.mean(axis=0))

    def problem(self, seed: int, folds: int) -> Problem:
        """One random draw: clients and test rows, and folds of the clients' rows for choosing."""
        rng = streams.generator(streams.check_seed(seed), Purpose.SOURCE)
        shares = np.repeat(np.arange(4), np.round(self.per_class * np.array([0.4, 0.3, 0.2, 0.1])).astype(int))
        y = np.repeat(np.arange(self.classes, dtype=np.int32), len(shares))
        client = ((np.tile(shares, self.classes) - y) % 4).astype(np.int32)
        X, y, client = self._rows(y, rng), flip(y, client, self.flipped, self.classes, rng), client
        order = np.lexsort((y, client))
        X, y, client = X[order], y[order], client[order]
        labels = np.repeat(np.arange(self.classes, dtype=np.int32), TEST_ROWS // self.classes)
        whole = Split(_clients(X, y, client, self.classes), self._rows(labels, rng), labels)
        # Rows are sorted by client and label, so that each fold has its part of both.
        fold = np.arange(len(y)) % folds
        parts = (fold == number for number in range(folds))
        return Problem(
            whole,
            tuple(Split(_clients(X[~out], y[~out], client[~out], self.classes), X[out], y[out]) for out in parts),
        )

    def _rows(self, labels: Labels, rng: np.random.Generator) -> Floats:
        means = self.means()
        covariance = np.array([[1.0, self.correlation], [self.correlation, 1.0]])
        noise = rng.standard_normal((len(labels), 2)) @ np.linalg.cholesky(covariance).T
        points = means[labels] + self.overlap * noise
        longest = math.hypot(np.linalg.norm(means, axis=1).max() + 3.0 * self.overlap, 1.0)
        return shortened(np.column_stack([points, np.ones(len(labels))]) / longest)


def flip(labels: Labels, client: Labels, share: float, classes: int, rng: np.random.Generator) -> Labels:
    """The share, rounded, of each client's labels changed to another class, each other class alike."""
    changed = labels.copy()
    for number in range(int(client.max()) + 1):
        own = np.flatnonzero(client == number)
        flips = rng.permutation(own)[: round(share * len(own))]
        changed[flips] = (labels[flips] + rng.integers(1, classes, len(flips))) % classes
    return changed


def shortened(rows: Floats) -> Floats:
    """x / max(1, ||x||_2)."""
    return np.asarray(rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True)))


def _clients(features: Floats, labels: Labels, client: Labels, classes: int) -> Clients:
    return Clients(features, labels, client, np.zeros(len(labels), np.int8), classes=tuple(range(classes)))

"""The second paper's tables as federated problems: who holds which rows, what is tested, and folds for choosing."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedhedge import checks, data, streams
from fedhedge.data import Clients, Imbalanced, Scaling
from fedhedge.data.partitioners.base import deal

CLIENTS = 4
TABLES = ("iris", "wine", "penguins", "seeds", "dermatology")
PUMP = "pump"
SCALINGS = ("unit", "centred", "standard")
FLIPPED = 0.1
# Offset of the pump's test rows, in standard deviations of the training rows, and how many features have it.
OFFSET, OFFSET_FEATURES = 0.5, 5

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]


class Split(NamedTuple):
    """Clients to train on, and rows to judge by: features [m, P], labels [m]."""

    clients: Clients
    features: Floats
    labels: Labels


class Problem(NamedTuple):
    """What is reported, and the folds of its training rows by which hyper-parameters are chosen."""

    whole: Split
    folds: tuple[Split, ...]


def problem(name: str, seed: int, *, folds: int, scaling: str = "unit", flipped: float = FLIPPED) -> Problem:
    """One random split of a table: protocol 7.2 of the paper, and 7.1 for the pump.

    Of each class a share of the rows (30 %, of the pump 20 %) is for testing. Class c gives client g of four the
    share (.4, .3, .2, .1)[(g + c) mod 4] of its training rows. Then `flipped` of each client's labels become another
    class. Features are brought to [0, 1] ("unit") or to [-1, 1] ("centred") by their range over the training rows, or
    to mean 0 and standard deviation 1 ("standard"), and x becomes x / max(1, ||x||_2). Test labels are clean; five
    random features of the pump's test rows are half a standard deviation too high.

    Each fold holds out 1/folds of every client's rows, with the labels that the client has. The numbers of rows are
    the same for every seed and fold, so that all runs on a table share one compiled programme.
    """
    pump = name == PUMP
    rows = _load(checks.one_of("table", name, (*TABLES, PUMP)))
    flipped = checks.number("flipped", flipped, low=0.0, below=1.0)
    checks.integer("folds", folds, low=2)
    checks.one_of("scaling", scaling, SCALINGS)
    rng = streams.generator(streams.check_seed(seed), streams.Purpose.PARTITION)
    order = np.lexsort((rng.random(len(rows)), rows.labels))
    features, labels = rows.features[order], rows.labels[order]
    test = _first_of_each(labels, 0.2 if pump else 0.3)
    client = _dealt(labels[~test], rows.number_of_classes)
    X, tested = features[~test], features[test]
    if pump:
        shifted = rng.permutation(X.shape[1])[:OFFSET_FEATURES]
        tested[:, shifted] += OFFSET * X[:, shifted].std(axis=0)
    scale = _scaled(X, scaling)
    y = _with_flips(labels[~test], client, flipped, rows.number_of_classes, rng)
    order = np.lexsort((rng.random(len(y)), y, client))
    X, y, client = scale(X[order]), y[order], client[order]
    whole = Split(_clients(X, y, client, rows.classes), scale(tested), labels[test])
    held_out = (_held_out(client, fold, folds) for fold in range(folds))
    return Problem(
        whole, tuple(Split(_clients(X[~out], y[~out], client[~out], rows.classes), X[out], y[out]) for out in held_out)
    )


@functools.cache
def _load(name: str) -> data.Dataset:
    return data.load(name)


def _first_of_each(labels: Labels, share: float) -> NDArray[np.bool_]:
    """The first rows of each class of sorted labels, the share rounded."""
    counts = np.bincount(labels)
    place = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
    return place < np.round(share * counts)[labels]


def _dealt(labels: Labels, classes: int) -> Labels:
    """Clients of sorted labels; always the same lots, since the order of the rows is random already."""
    lots = streams.generator(0, streams.Purpose.PARTITION)
    shares = Imbalanced(CLIENTS, rotate=True).shares(np.bincount(labels, minlength=classes), lots)
    return deal(labels, shares, lots)


def _with_flips(labels: Labels, client: Labels, share: float, classes: int, rng: np.random.Generator) -> Labels:
    """The share, rounded, of each client's labels changed to another class, each other class alike."""
    changed = labels.copy()
    for number in range(CLIENTS):
        own = np.flatnonzero(client == number)
        flips = rng.permutation(own)[: round(share * len(own))]
        changed[flips] = (labels[flips] + rng.integers(1, classes, len(flips))) % classes
    return changed


def _scaled(training: Floats, kind: str) -> Callable[[Floats], Floats]:
    """The map of rows into the unit ball that belongs to these training rows."""
    of_rows = Scaling.standard(training) if kind == "standard" else Scaling.unit(training)

    def scale(rows: Floats) -> Floats:
        scaled = 2.0 * of_rows(rows) - 1.0 if kind == "centred" else of_rows(rows)
        return np.asarray(scaled / np.maximum(1.0, np.linalg.norm(scaled, axis=1, keepdims=True)))

    return scale


def _held_out(client: Labels, fold: int, folds: int) -> NDArray[np.bool_]:
    """Rows that a fold holds out, equally many for each fold; rows are sorted by client and, within it, by label."""
    out = np.zeros(len(client), bool)
    for number in range(CLIENTS):
        own = np.flatnonzero(client == number)
        # Every folds-th row of those sorted by label; where the number does not divide, slices overlap by one.
        spread = np.concatenate([own[start::folds] for start in range(folds)])
        taken = fold * len(own) // folds + np.arange(math.ceil(len(own) / folds))
        out[spread[taken % len(own)]] = True
    return out


def _clients(features: Floats, labels: Labels, client: Labels, classes: tuple[object, ...] | None) -> Clients:
    return Clients(features, labels, client, np.zeros(len(labels), np.int8), classes=classes)

"""Training, validation and test rows of each client."""

from __future__ import annotations

import numpy as np

from fedhedge import checks, streams
from fedhedge.checks import InvalidInput

TRAIN, VALIDATION, TEST = 0, 1, 2
NAMES = ("train", "validation", "test")


def code(split: str) -> int:
    """Number that stands for the split's name; InvalidInput for another name."""
    return NAMES.index(checks.one_of("split", split, NAMES))


def check_fractions(validation: float, test: float) -> tuple[float, float]:
    """Both fractions as floats; each is at least 0 and together they leave something to train on."""
    validation = checks.number("validation", validation, low=0.0, below=1.0)
    test = checks.number("test", test, low=0.0, below=1.0)
    if validation + test >= 1.0:
        raise InvalidInput("validation + test", validation + test, "a number in [0, 1)")
    return validation, test


def draw(labels: np.ndarray, client: np.ndarray, validation: float, test: float, seed: int) -> np.ndarray:
    """Split of every row, int8[n], drawn for each client from its own stream.

    A client with n rows gets round(test n) test rows and round(validation n) validation rows, but always keeps one
    row to train on. Of each class it holds out its proportional share within one row; real-valued labels (a
    regression) form one class.
    """
    validation, test = check_fractions(validation, test)
    split = np.full(len(labels), TRAIN, np.int8)
    strata = labels if labels.dtype.kind in "iu" else np.zeros(len(labels), np.int32)
    order = np.argsort(client, kind="stable")
    ends = np.flatnonzero(np.diff(client[order])) + 1
    for rows in np.split(order, ends) if len(order) else []:
        rng = streams.generator(seed, streams.Purpose.PARTITION, client=int(client[rows[0]]))
        split[rows] = _draw_one(strata[rows], validation, test, rng)
    return split


def _draw_one(strata: np.ndarray, validation: float, test: float, rng: np.random.Generator) -> np.ndarray:
    n = len(strata)
    tests = min(round(test * n), n - 1)
    held = tests + min(round(validation * n), n - 1 - tests)
    # Systematic sampling along rows sorted by class: evenly spaced picks are proportional in every class.
    order = np.lexsort((rng.random(n), strata))
    holdout = order[_evenly_spaced(n, held, rng)]
    split = np.full(n, TRAIN, np.int8)
    split[holdout] = VALIDATION
    split[holdout[_evenly_spaced(held, tests, rng)]] = TEST
    return split


def _evenly_spaced(n: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Mask of exactly `count` of n places, the gaps between them equal within one, from a random start."""
    if count == 0:
        return np.zeros(n, bool)
    return np.diff((np.arange(n + 1) * count + rng.integers(n)) // n).astype(bool)

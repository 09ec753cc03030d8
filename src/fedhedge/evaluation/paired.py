"""Paired comparison of two methods over seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from fedhedge import checks

if TYPE_CHECKING:
    from fedhedge.simulation import Run


@dataclass(frozen=True)
class PairedInterval:
    """Mean difference over pairs, its confidence interval [low, high], and the two-sided p-value of "no difference"."""

    difference: float
    low: float
    high: float
    p_value: float
    pairs: int


def paired_t(ours: ArrayLike, theirs: ArrayLike, level: float = 0.95) -> PairedInterval:
    """Student's t interval of the mean of the differences ours - theirs, [n] each, n >= 2.

    mean(d) +- t_{n-1, (1+level)/2} sd(d)/sqrt(n). Differences that are all equal give an interval of one point.
    Raises InvalidInput for fewer than two pairs, lengths that differ, or values that are not finite.
    """
    level = checks.number("level", level, above=0.0, below=1.0)
    first, second = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if first.ndim != 1 or first.shape != second.shape or len(first) < 2:
        raise checks.InvalidInput("pairs", (first.shape, second.shape), "two lists of the same length, 2 or more")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise checks.InvalidInput("values", [*first, *second], "finite numbers")
    apart = first - second
    mean, pairs = float(apart.mean()), len(apart)
    error = float(apart.std(ddof=1)) / pairs**0.5
    if error == 0.0:
        return PairedInterval(mean, mean, mean, 1.0 if mean == 0.0 else 0.0, pairs)
    half = float(stats.t.ppf((1 + level) / 2, pairs - 1)) * error
    p_value = 2.0 * float(stats.t.sf(abs(mean) / error, pairs - 1))
    return PairedInterval(mean, mean - half, mean + half, p_value, pairs)


def paired_difference(
    ours: Sequence[Run], theirs: Sequence[Run], measure: Callable[[Run], float], level: float = 0.95
) -> PairedInterval:
    """`paired_t` of a number measured on each run, paired by seed; seeds that only one side has are left out.

    Runs of one seed share the initial model and, unless the method chooses its clients, the draws of who gets through:
    their difference is rid of what they have in common.
    Raises InvalidInput when a side has a seed twice, or fewer than two seeds are common.
    """
    left, right = _by_seed("ours", ours), _by_seed("theirs", theirs)
    seeds = sorted(left.keys() & right.keys())
    if len(seeds) < 2:
        raise checks.InvalidInput("common seeds", seeds, "at least two")
    return paired_t([measure(left[s]) for s in seeds], [measure(right[s]) for s in seeds], level)


def _by_seed(name: str, runs: Sequence[Run]) -> dict[int, Run]:
    found = {run.settings["seed"]: run for run in runs}
    if len(found) < len(runs):
        raise checks.InvalidInput(f"seeds of {name}", [run.settings["seed"] for run in runs], "each seed once")
    return found

"""Empirical lower bounds on the privacy loss, from many outcomes on two neighbouring tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta, norm

from fedhedge import checks
from fedhedge.privacy.gaussian import check_delta_value

FloatArray = NDArray[np.float64]
_CANDIDATES = 512


@dataclass(frozen=True)
class Audit:
    """Lower bounds on what a mechanism leaks between two tables that differ in one replaced row.

    epsilon: with probability `confidence` at least, the mechanism is not (e, delta)-private for any e below this;
    nothing about the mechanism is assumed. mu: likewise, it is not mu-Gaussian-private for any smaller mu; from few
    outcomes this refutes a claim much sooner. 0 means that nothing was shown. trials: outcomes per table behind the
    bounds (half of those given).
    """

    epsilon: float
    mu: float
    delta: float
    confidence: float
    trials: int


def audit(table: ArrayLike, neighbour: ArrayLike, delta: float, confidence: float = 0.95) -> Audit:
    """Attack a mechanism by thresholds on a score of its outcomes and bound epsilon and mu from below.

    table, neighbour: float[n] and float[m], one score per independent run on either table; any function of what is
    released, best the projection on the direction in which the tables move it.

    For an event S "score above (or below) t", with p = P(S | table) and q = P(S | neighbour), (epsilon, delta)-privacy
    gives p <= exp(epsilon) q + delta and mu-Gaussian privacy gives Phi^-1(p) - Phi^-1(q) <= mu, and the same with p and
    q exchanged. The first half of the outcomes chooses S, the second half bounds p and q by one-sided Clopper-Pearson
    intervals at level (1 - confidence)/2 each, so that choosing costs no confidence. Each of the two bounds holds with
    the confidence stated.

    Raises InvalidInput for fewer than 20 scores, scores that are not finite, or settings outside their range.
    Source: Dong, Roth and Su 2019 (arXiv 1905.02383) for the Gaussian trade-off; Clopper and Pearson 1934.
    """
    delta = check_delta_value(delta)
    confidence = checks.number("confidence", confidence, above=0, below=1)
    pair = (_scores("table", table), _scores("neighbour", neighbour))
    level = (1 - confidence) / 2
    trials = [len(scores) // 2 for scores in pair]
    choosing = [np.sort(scores[:half]) for scores, half in zip(pair, trials, strict=True)]
    judging = [np.sort(scores[half:]) for scores, half in zip(pair, trials, strict=True)]
    pooled = np.sort(np.concatenate(choosing))
    thresholds = pooled[np.unique(np.linspace(0, len(pooled) - 1, _CANDIDATES).astype(int))]
    first = _bounds(choosing, thresholds, delta, level)
    # Each row of bounds is one kind of claim; the best event of the first half is the only one judged on the second.
    best = [np.unravel_index(int(np.argmax(kind)), kind.shape) for kind in first]
    second = _bounds(judging, thresholds, delta, level)
    epsilon, mu = (max(0.0, float(kind[event])) for kind, event in zip(second, best, strict=True))
    return Audit(epsilon, mu, delta, confidence, min(len(scores) for scores in judging))


def _bounds(
    pair: list[FloatArray], thresholds: FloatArray, delta: float, level: float
) -> tuple[FloatArray, FloatArray]:
    """Lower bounds on epsilon and mu, float[4, thresholds]: score above or below t, either table the likelier one."""
    totals = [len(scores) for scores in pair]
    below = [np.searchsorted(scores, thresholds, side="right") for scores in pair]
    above = [total - count for total, count in zip(totals, below, strict=True)]
    epsilon, mu = [], []
    for counts in (above, below):
        for likely, other in ((0, 1), (1, 0)):
            low = _lower(counts[likely], totals[likely], level)
            high = _upper(counts[other], totals[other], level)
            gain = np.maximum(low - delta, 0)
            epsilon.append(np.log(gain, out=np.full_like(gain, -np.inf), where=gain > 0) - np.log(high))
            mu.append(norm.ppf(low) - norm.ppf(high))
    return np.array(epsilon), np.array(mu)


def _lower(count: NDArray[np.int64], total: int, level: float) -> FloatArray:
    return np.where(count == 0, 0.0, beta.ppf(level, np.maximum(count, 1), total - count + 1))


def _upper(count: NDArray[np.int64], total: int, level: float) -> FloatArray:
    return np.where(count == total, 1.0, beta.ppf(1 - level, count + 1, np.maximum(total - count, 1)))


def _scores(name: str, values: ArrayLike) -> FloatArray:
    scores = np.asarray(values, dtype=np.float64)
    if scores.ndim != 1 or len(scores) < 20:
        raise checks.InvalidInput(name, f"an array of shape {scores.shape}", "a list of 20 scores or more")
    if not np.isfinite(scores).all():
        raise checks.InvalidInput(name, "a score that is not finite", "finite scores")
    return scores

"""The two-sample Z test over the last evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from fedhedge import checks
from fedhedge.evaluation.clients import by_client

if TYPE_CHECKING:
    from fedhedge.simulation import Run


@dataclass(frozen=True)
class ZTest:
    """Difference of two means, its Z statistic, and the two-sided p-value under a standard normal law."""

    difference: float
    z: float
    p_value: float


def two_sample_z(ours: ArrayLike, theirs: ArrayLike) -> ZTest:
    """Z = (mean(a) - mean(b)) / sqrt(var(a)/n + var(b)/m), variances with divisors n - 1 and m - 1.

    Raises InvalidInput for fewer than two values on a side, values that are not finite, or no variance at all.
    """
    first, second = np.asarray(ours, np.float64).ravel(), np.asarray(theirs, np.float64).ravel()
    for name, values in (("ours", first), ("theirs", second)):
        if len(values) < 2 or not np.isfinite(values).all():
            raise checks.InvalidInput(name, values.tolist(), "at least two finite numbers")
    variance = first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second)
    if variance == 0.0:
        raise checks.InvalidInput("variance", 0.0, "values that vary on at least one side")
    difference = float(first.mean() - second.mean())
    z = difference / float(variance) ** 0.5
    return ZTest(difference, z, 2.0 * float(stats.norm.sf(abs(z))))


def z_test(
    ours: Sequence[Run], theirs: Sequence[Run], metric: str = "accuracy", split: str = "test", last: int = 10
) -> ZTest:
    """`two_sample_z` of the client means at the `last` evaluations of all runs of a side, as the FedeRage paper tests.

    It takes these values as independent. They are not: consecutive evaluations look at almost the same model, so that
    the test finds differences where there are none. Prefer `paired_difference`; this is for comparison with the paper.
    Raises InvalidInput when a run holds no such metric or fewer than `last` evaluations.
    Source: arXiv 2609.21057, Table I (level 5 %).
    """
    return two_sample_z(_last(ours, metric, split, last), _last(theirs, metric, split, last))


def _last(runs: Sequence[Run], metric: str, split: str, last: int) -> np.ndarray:
    curves = [by_client(run, metric, split).mean(axis=1) for run in runs]
    return np.concatenate([curve.tail(checks.integer("last", last, low=1, high=len(curve))) for curve in curves])

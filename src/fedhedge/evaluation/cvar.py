"""Conditional value at risk of a discrete distribution."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fedhedge import checks


def cvar(values: ArrayLike, alpha: float, *, upper: bool = True) -> float:
    """Mean of the tail of mass alpha of n equally likely values: CVaR_alpha(v) = min_t t + E[(v - t)_+] / alpha.

    The tail takes values from the largest down (`upper`; else from the smallest up), and only a fraction of the value
    at which the mass alpha is reached, so that the result is exact for every alpha in (0, 1]. alpha = 1 is the mean.
    NaN values are left out; NaN when none remains. Raises InvalidInput when alpha is outside (0, 1].
    Source: Rockafellar and Uryasev 2002, proposition 8; FedeRage (arXiv 2609.21057), eq. (10).
    """
    alpha = checks.number("alpha", alpha, above=0.0, high=1.0)
    numbers = np.asarray(values, np.float64)
    ordered = np.sort(numbers[~np.isnan(numbers)])
    if not len(ordered):
        return float("nan")
    if upper:
        ordered = ordered[::-1]
    # In units of one value's mass: 1 for each value inside the tail, the rest of the mass for the one at its end.
    mass = np.clip(alpha * len(ordered) - np.arange(len(ordered)), 0.0, 1.0)
    counted = mass > 0  # 0 times infinity would be no number
    return float(mass[counted] @ ordered[counted] / mass.sum())

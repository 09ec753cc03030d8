"""The Gaussian mechanism for one release: the classic formula, and the exact trade-off of epsilon, delta and noise.

A mechanism adds N(0, sigma^2) to every entry of a statistic whose l2 distance over two neighbouring tables is at most
`sensitivity`. All that matters is mu = sensitivity / sigma (no unit), the parameter of Gaussian differential privacy.
Neighbouring tables: one row of one client is replaced by another; the client's number of rows is public.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr

from fedhedge import checks

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
# delta <= Phi(-40) = 1e-350 is below the smallest positive double.
_UNDERFLOW = 40.0
# Beyond these, epsilon or mu^2 would soon leave the doubles; no one means such a budget.
_LARGEST_EPSILON, _LARGEST_MU = 1e300, 1e152


def classic_sigma(sensitivity: float, epsilon: float, delta: float) -> float:
    """Noise of the classic Gaussian mechanism for one (epsilon, delta) release.

    sigma = sensitivity sqrt(2 ln(1.25 / delta)) / epsilon, in the unit of `sensitivity` (the l2 distance over tables
    that differ in one replaced row).

    Raises InvalidInput when epsilon >= 1, where the formula is not proven.
    Source: Dwork and Roth 2014, Theorem A.1; eq. for sigma_M and sigma_lambda of DP-Fed DRO.
    """
    return checks.number("sensitivity", sensitivity, low=0) / classic_mu(epsilon, delta)


def classic_mu(epsilon: float, delta: float) -> float:
    """mu = sensitivity / sigma of the classic Gaussian mechanism: epsilon / sqrt(2 ln(1.25 / delta)), no unit.

    For one release, tables that differ in one replaced row. Raises InvalidInput when epsilon >= 1.
    """
    epsilon = checks.number("epsilon", epsilon, above=0)
    delta = check_delta_value(delta)
    if epsilon >= 1:
        reason = "the classic Gaussian formula is proven below 1 only; the analytic one has no such limit"
        raise checks.InvalidInput("epsilon", epsilon, "a number in (0, 1)", reason)
    return epsilon / math.sqrt(2 * (math.log(1.25) - math.log(delta)))


def classic_epsilon(delta: float, mu: float) -> float | None:
    """The epsilon that the classic formula gives a release of this mu, or None from 1 on, where it is not proven.

    epsilon = mu sqrt(2 ln(1.25 / delta)); tables that differ in one replaced row.
    """
    epsilon = checks.number("mu", mu, low=0) * math.sqrt(2 * (math.log(1.25) - math.log(check_delta_value(delta))))
    return epsilon if epsilon < 1 else None


def analytic_sigma(sensitivity: float, epsilon: float, delta: float) -> float:
    """Smallest noise with which one release is (epsilon, delta)-private; valid for every epsilon.

    In the unit of `sensitivity` (the l2 distance over tables that differ in one replaced row).
    Source: Balle and Wang 2018 (arXiv 1805.06530), Theorem 8 and Algorithm 1.
    """
    return checks.number("sensitivity", sensitivity, low=0) / gaussian_mu(epsilon, delta)


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Exact delta at epsilon of a Gaussian release with mu = sensitivity / sigma.

    delta = Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu), over tables that differ in one replaced row.
    Source: Balle and Wang 2018 (arXiv 1805.06530), Theorem 8.
    """
    return math.exp(_log_delta(check_epsilon(epsilon), checks.number("mu", mu, above=0, high=_LARGEST_MU)))


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Exact epsilon at delta of a Gaussian release with mu = sensitivity / sigma; 0 where delta alone covers it.

    The root in epsilon of `gaussian_delta(epsilon, mu) = delta`; tables that differ in one replaced row.
    """
    target = math.log(check_delta_value(delta))
    mu = check_mu(mu)
    if mu == 0 or _log_delta(0.0, mu) <= target:
        return 0.0
    return _positive_root(lambda epsilon: target - _log_delta(epsilon, mu))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest mu = sensitivity / sigma with which a Gaussian release is (epsilon, delta)-private.

    The root in mu of `gaussian_delta(epsilon, mu) = delta`; tables that differ in one replaced row.
    """
    epsilon = check_epsilon(epsilon)
    target = math.log(check_delta_value(delta))
    return _positive_root(lambda mu: _log_delta(epsilon, mu) - target)


def check_delta_value(delta: float) -> float:
    """delta as a probability strictly between 0 and 1. Raises InvalidInput when it is not."""
    return checks.number("delta", delta, above=0, below=1)


def check_epsilon(epsilon: float) -> float:
    """epsilon from 0 to 1e300, so that the mu that it allows can be computed with. Raises InvalidInput."""
    return checks.number("epsilon", epsilon, low=0, high=_LARGEST_EPSILON)


def check_mu(mu: float) -> float:
    """mu from 0 to 1e152, so that epsilon, about mu^2 / 2, can be stated. Raises InvalidInput."""
    return checks.number("mu", mu, low=0, high=_LARGEST_MU)


def _log_delta(epsilon: float, mu: float) -> float:
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if near > _UNDERFLOW:
        return float(log_ndtr(-near))
    if mu > 1:
        # With R the Mills ratio and phi the normal density, exp(epsilon) Phi(-far) = phi(near) R(far) and
        # Phi(-near) = phi(near) R(near); where R(near) overflows, the second term is nothing beside the first.
        return float(log_ndtr(-near)) + math.log1p(-float(erfcx(far / math.sqrt(2)) / erfcx(near / math.sqrt(2))))
    # The two terms of delta cancel when mu is small. As R' = t R - 1,
    # delta = phi(near) (R(near) - R(far)) = phi(near) * integral over [near, far] of 1 - t R(t), a positive integrand.
    points = epsilon / mu + mu / 2 * _NODES
    mills = math.sqrt(math.pi / 2) * erfcx(points / math.sqrt(2))
    integral = mu / 2 * float(_WEIGHTS @ (1 - points * mills))
    if integral == 0:
        return -math.inf
    return -(near**2) / 2 - math.log(2 * math.pi) / 2 + math.log(integral)


def _positive_root(increasing: Callable[[float], float]) -> float:
    low = high = 1.0
    while increasing(low) > 0:
        low, high = low / 2, low
    while increasing(high) < 0:
        low, high = high, 2 * high
    # Half of it must not vanish.
    smallest = 4 * math.ulp(0.0)
    return float(brentq(increasing, low, high, xtol=max(1e-14 * low, smallest), rtol=1e-14)) if low < high else low

"""The Gaussian trade-off against quadrature, 900-digit arithmetic and dp_accounting."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import Any

import dp_accounting
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.integrate import quad

from fedhedge import InvalidInput
from fedhedge.privacy import (
    analytic_sigma,
    classic_epsilon,
    classic_mu,
    classic_sigma,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    moments_epsilon,
    moments_mu,
    run_mu,
)

epsilons = st.floats(-3, 1.5).map(lambda exponent: 10**exponent)
deltas = st.floats(-12, -0.01).map(lambda exponent: 10**exponent)


def delta_by_quadrature(epsilon: float, mu: float) -> float:
    """E[(1 - exp(epsilon - L))_+] for the privacy loss L ~ N(mu^2/2, mu^2): a positive integrand, no cancellation."""
    start = epsilon / mu - mu / 2

    def integrand(step: float) -> float:
        return -math.expm1(-mu * step) * math.exp(-((start + step) ** 2) / 2) / math.sqrt(2 * math.pi)

    centre = max(0.0, -start)
    pieces = [0.0, *(centre + offset for offset in (-8, -3, 0.3, 1, 3, 8, 40) if centre + offset > 0)]
    return math.fsum(quad(integrand, low, high, epsabs=0, epsrel=1e-12, limit=200)[0] for low, high in pairwise(pieces))


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.05, 0.3, 0.999, 1.001, 2.0, 6.0, 20.0])
@pytest.mark.parametrize("deviations", [0.0, 0.4, 1.0, 5.0, 15.0, 30.0])
def test_delta_is_the_integral_of_the_privacy_loss(mu: float, deviations: float) -> None:
    epsilon = mu * deviations
    assert gaussian_delta(epsilon, mu) == pytest.approx(delta_by_quadrature(epsilon, mu), rel=1e-9, abs=0)


def decimal_tail(x: Decimal, pi: Decimal) -> Decimal:
    """P(Z > x) by the power series of the normal integral."""
    term = total = x
    index = 0
    while abs(term) > Decimal(10) ** -880:
        index += 1
        term *= -x * x / (2 * index)
        total += term / (2 * index + 1)
    return Decimal("0.5") - total / (2 * pi).sqrt()


def decimal_pi() -> Decimal:
    """pi by Machin's formula."""

    def arctan_of_inverse(n: int) -> Decimal:
        power = total = 1 / Decimal(n)
        index, sign = 1, 1
        while power > Decimal(10) ** -895:
            power /= n * n
            index, sign = index + 2, -sign
            total += sign * power / index
        return total

    return 16 * arctan_of_inverse(5) - 4 * arctan_of_inverse(239)


@pytest.mark.parametrize(
    ("epsilon", "mu"),
    [(0.5, 0.1), (3.0, 0.65), (1.0, 0.04), (40.0, 1.3), (0.0, 1e-5), (0.02, 0.001), (3e-5, 1e-6), (700.0, 20.0)],
)
def test_delta_to_900_digits(epsilon: float, mu: float) -> None:
    with localcontext() as context:
        context.prec = 900
        exact_epsilon, exact_mu, pi = Decimal(epsilon), Decimal(mu), decimal_pi()
        middle = exact_epsilon / exact_mu
        exact = decimal_tail(middle - exact_mu / 2, pi) - exact_epsilon.exp() * decimal_tail(middle + exact_mu / 2, pi)
        expected = float(exact.ln())
    assert math.log(gaussian_delta(epsilon, mu)) == pytest.approx(expected, abs=1e-9)


@given(mu=st.floats(0.01, 30), delta=deltas)
def test_epsilon_and_sigma_agree_with_dp_accounting(mu: float, delta: float) -> None:
    epsilon = gaussian_epsilon(delta, mu)
    # dp_accounting solves to its own tolerance of about 1e-10 in epsilon.
    assert epsilon == pytest.approx(dp_accounting.get_epsilon_gaussian(1 / mu, delta), rel=1e-6, abs=1e-7)
    assume(epsilon > 1e-3)
    assert analytic_sigma(1.0, epsilon, delta) == pytest.approx(
        dp_accounting.get_sigma_gaussian(epsilon, delta), rel=1e-4
    )


@given(epsilon=epsilons, delta=deltas)
def test_calibration_is_exact_and_cannot_be_improved(epsilon: float, delta: float) -> None:
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_delta(epsilon, mu) == pytest.approx(delta, rel=1e-9, abs=0)
    assert gaussian_delta(epsilon, mu * 1.0001) > delta
    assert gaussian_epsilon(delta, mu) == pytest.approx(epsilon, rel=1e-8)
    assert analytic_sigma(3.0, epsilon, delta) == pytest.approx(3.0 / mu)


def test_extremes_stay_finite_and_ordered() -> None:
    assert gaussian_delta(1e6, 1e-3) == 0.0
    assert gaussian_delta(0.0, 1e3) == 1.0
    assert gaussian_epsilon(0.5, 1e-9) == 0.0
    assert gaussian_epsilon(1e-6, 0.0) == 0.0
    assert gaussian_delta(0.0, 1e-9) == pytest.approx(1e-9 / math.sqrt(2 * math.pi), rel=1e-9, abs=0)
    assert gaussian_delta(gaussian_epsilon(5e-324, 1.0), 1.0) <= 1e-323
    deltas_falling = [gaussian_delta(epsilon, 0.7) for epsilon in np.linspace(0, 25, 200)]
    assert all(left > right for left, right in pairwise(deltas_falling))


@given(epsilon=st.floats(1e-3, 0.9999), delta=deltas)
def test_classic_noise_suffices_below_one(epsilon: float, delta: float) -> None:
    mu = classic_mu(epsilon, delta)
    assert gaussian_delta(epsilon, mu) <= delta
    assert classic_sigma(2.0, epsilon, delta) == pytest.approx(2.0 * math.sqrt(2 * math.log(1.25 / delta)) / epsilon)
    assert classic_epsilon(delta, mu) == pytest.approx(epsilon)


def test_classic_formula_is_refused_from_one_on_for_a_reason() -> None:
    epsilon, delta = 50.0, 1e-5
    noise_of_the_formula = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    assert gaussian_delta(epsilon, 1 / noise_of_the_formula) > 1000 * delta
    with pytest.raises(InvalidInput, match=r"epsilon: received 1.0; allowed: a number in \(0, 1\).*proven below 1"):
        classic_sigma(1.0, 1.0, 1e-5)
    assert classic_epsilon(1e-5, 1.0) is None


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-6, math.nan, "1e-6", True])
def test_delta_outside_its_range_is_refused(delta: Any) -> None:
    for function in (gaussian_mu, lambda epsilon, value: gaussian_epsilon(value, 1.0), classic_mu):
        with pytest.raises(InvalidInput, match=r"delta: received"):
            function(0.5, delta)


@pytest.mark.parametrize("delta", [5e-324, 1e-300, 1e-6, 0.5, 1 - 2**-53])
@pytest.mark.parametrize("epsilon", [0.0, 5e-324, 1e-300, 1e-9, 1.0, 1e6, 1e16, 1e100, 1e300])
def test_every_budget_has_a_mu(epsilon: float, delta: float) -> None:
    """For a large budget mu^2/2 + c mu = epsilon, where Phi(-c) = delta: mu is near sqrt(2 epsilon)."""
    mu = gaussian_mu(epsilon, delta)
    assert 0 < mu < math.inf
    assert moments_mu(epsilon, delta) < math.inf
    back = gaussian_epsilon(delta, mu)
    if epsilon >= 1:
        assert back == pytest.approx(epsilon, rel=1e-6)
    if epsilon >= 1e16:
        assert mu == pytest.approx(math.sqrt(2 * epsilon), rel=1e-6)


@pytest.mark.parametrize("delta", [5e-324, 1e-6, 1 - 2**-53])
@pytest.mark.parametrize("mu", [5e-324, 1e-200, 1e8, 1e100, 1e152])
def test_every_mu_has_an_epsilon(mu: float, delta: float) -> None:
    exact, moments = gaussian_epsilon(delta, mu), moments_epsilon(delta, mu)
    assert 0 <= exact <= moments * (1 + 1e-9) < math.inf
    if mu >= 1e8:
        # mu^2/2 up to c mu, with c below 38.5 for any delta that a double holds.
        assert exact == pytest.approx(mu**2 / 2, rel=1e-6)
    assert 0 <= gaussian_delta(0.0, mu) <= 1
    assert classic_epsilon(delta, 1e-200) == pytest.approx(1e-200 * math.sqrt(2 * (math.log(1.25) - math.log(delta))))


def test_beyond_the_extremes_is_refused() -> None:
    for function in (gaussian_mu, moments_mu):
        with pytest.raises(InvalidInput, match=r"epsilon: received 1e\+301; allowed: a number in \[0, 1e\+300\]"):
            function(1e301, 1e-6)
    for of in (lambda mu: gaussian_epsilon(1e-6, mu), lambda mu: moments_epsilon(1e-6, mu), lambda mu: run_mu(1, [mu])):
        with pytest.raises(InvalidInput, match=r"mu: received"):
            of(math.inf)
    with pytest.raises(InvalidInput, match=r"mu: received 1e\+160; allowed: a number in \[0, 1e\+152\]"):
        gaussian_epsilon(1e-6, run_mu(4, [5e159]))

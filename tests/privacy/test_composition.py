"""Whole runs: the paper's totals, the exact ones, and both accountants of dp_accounting."""

from __future__ import annotations

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp
from hypothesis import given
from hypothesis import strategies as st

from fedhedge.privacy import gaussian_epsilon, moments_epsilon, moments_mu, run_mu

# epsilon, delta, rounds, the paper's total, the exact total (from the specification of the method)
PAPER = [(0.5, 1e-6, 50, 3.7299, 3.101), (0.2, 1e-8, 120, 2.2421, 1.897)]
SPLIT = {"model": 0.95, "lambda": 0.05}


def paper_mus(epsilon: float, delta: float) -> list[float]:
    """mu_j = epsilon_j / sqrt(2 ln(1.25/delta)) of both mechanisms of a round."""
    return [math.sqrt(share) * epsilon / math.sqrt(2 * math.log(1.25 / delta)) for share in SPLIT.values()]


@pytest.mark.parametrize(("epsilon", "delta", "rounds", "paper_total", "exact_total"), PAPER)
def test_totals_of_the_paper(epsilon: float, delta: float, rounds: int, paper_total: float, exact_total: float) -> None:
    moments = rounds / 4 * sum(share * epsilon**2 / math.log(1.25 / delta) for share in SPLIT.values())
    total = moments + 2 * math.sqrt(moments * math.log(1 / delta))
    assert total == pytest.approx(paper_total, abs=5e-5)
    mu = run_mu(rounds, paper_mus(epsilon, delta))
    assert moments_epsilon(delta, mu) == pytest.approx(total, rel=1e-12)
    assert gaussian_epsilon(delta, mu) == pytest.approx(exact_total, abs=5e-4)


def whole_run(mus: list[float], rounds: int) -> dp_accounting.DpEvent:
    releases = [dp_accounting.GaussianDpEvent(1 / mu) for mu in mus]
    return dp_accounting.SelfComposedDpEvent(dp_accounting.ComposedDpEvent(releases), rounds)


@pytest.mark.parametrize(("epsilon", "delta", "rounds"), [row[:3] for row in PAPER] + [(0.9, 1e-5, 10)])
def test_privacy_loss_distributions_agree(epsilon: float, delta: float, rounds: int) -> None:
    mus = paper_mus(epsilon, delta)
    accountant = pld.PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(whole_run(mus, rounds))
    assert gaussian_epsilon(delta, run_mu(rounds, mus)) == pytest.approx(accountant.get_epsilon(delta), rel=1e-4)


@pytest.mark.parametrize(("epsilon", "delta", "rounds"), [row[:3] for row in PAPER] + [(0.9, 1e-5, 10)])
def test_renyi_accounting_lies_between_exact_and_moments(epsilon: float, delta: float, rounds: int) -> None:
    mus = paper_mus(epsilon, delta)
    mu = run_mu(rounds, mus)
    orders = np.linspace(1.5, 200, 4000)
    accountant = rdp.RdpAccountant(orders=orders)
    accountant.compose(whole_run(mus, rounds))
    renyi = accountant.get_epsilon(delta)
    assert renyi == pytest.approx(rdp.compute_epsilon(orders, orders * mu**2 / 2, delta)[0])
    assert gaussian_epsilon(delta, mu) <= renyi <= moments_epsilon(delta, mu)


@given(mu=st.floats(0.001, 20), log_delta=st.floats(-20, -0.05))
def test_moments_formula_is_the_best_order_of_the_renyi_bound(mu: float, log_delta: float) -> None:
    delta = math.exp(log_delta)
    # Order 1 + x of a Gaussian costs (1 + x) mu^2 / 2, turned into epsilon by adding ln(1/delta) / x.
    best = math.sqrt(2 * -log_delta) / mu
    around = best * np.exp(np.linspace(-1, 1, 2001))
    assert moments_epsilon(delta, mu) == pytest.approx(np.min((1 + around) * mu**2 / 2 - log_delta / around), rel=1e-6)
    assert moments_epsilon(delta, mu) >= gaussian_epsilon(delta, mu)
    assert moments_mu(moments_epsilon(delta, mu), delta) == pytest.approx(mu)


def test_composition_of_unequal_releases_by_privacy_loss_distributions() -> None:
    mus = [0.1, 0.7, 1.3]
    accountant = pld.PLDAccountant()
    accountant.compose(dp_accounting.ComposedDpEvent([dp_accounting.GaussianDpEvent(1 / mu) for mu in mus]))
    assert gaussian_epsilon(1e-5, run_mu(1, mus)) == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-4)


def test_nothing_released_costs_nothing() -> None:
    assert run_mu(0, [0.3]) == run_mu(5, []) == 0.0
    assert moments_epsilon(1e-6, 0.0) == 0.0

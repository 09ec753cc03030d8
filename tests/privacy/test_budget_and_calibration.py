"""Budgets as users state them, and the noise that keeps to them."""

from __future__ import annotations

import math
from typing import Any

import dp_accounting
import pytest
from dp_accounting import pld
from hypothesis import given
from hypothesis import strategies as st

from fedhedge import InvalidInput
from fedhedge.privacy import NoiseMultipliers, Privacy, calibrate, check_delta, gaussian_delta, gaussian_mu, spent

budgets = st.builds(Privacy, st.floats(0.01, 20), st.floats(-10, -1).map(lambda exponent: 10**exponent))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": 3.0}, "privacy: received .*epsilon and delta together.*delta missing"),
        ({"delta": 1e-6}, "privacy: received .*epsilon and delta together.*epsilon missing"),
        ({}, "epsilon and delta missing"),
        ({"epsilon": 0, "delta": 1e-6}, r"epsilon: received 0; allowed: a number in \(0, inf\)"),
        ({"epsilon": -1.0, "delta": 1e-6}, "epsilon: received -1.0"),
        ({"epsilon": math.inf, "delta": 1e-6}, "epsilon: received inf"),
        ({"epsilon": 1.0, "delta": 0}, r"delta: received 0; allowed: a number in \(0, 1\)"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta: received 1.0"),
        ({"epsilon": 1.0, "delta": 1e-6, "per": "rounds"}, "per: received 'rounds'; allowed: total, round.*round?"),
    ],
)
def test_settings_that_are_partial_or_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Privacy(**settings)


def test_delta_must_be_below_one_over_n_at_every_site() -> None:
    assert check_delta(0.033, 30, "north") == 0.033
    with pytest.raises(InvalidInput, match=r"delta at site 'north': received 0.1; allowed: a number below 1/n = 0.1 "):
        check_delta(0.1, 10, "north")
    with pytest.raises(InvalidInput, match=r"samples at site 'north': received 0"):
        check_delta(0.1, 0, "north")


@given(budget=budgets, rounds=st.integers(1, 500), share=st.floats(0, 0.9))
def test_whole_run_costs_exactly_the_total_budget(budget: Privacy, rounds: int, share: float) -> None:
    noise = calibrate(budget, rounds, lambda_share=share)
    assert spent(noise, rounds, budget.delta) == pytest.approx(budget.epsilon, rel=1e-7)
    by_moments = calibrate(budget, rounds, lambda_share=share, accounting="paper")
    assert spent(by_moments, rounds, budget.delta, accounting="paper") == pytest.approx(budget.epsilon, rel=1e-7)
    assert by_moments.model > noise.model


@given(budget=budgets, share=st.floats(0.01, 0.9))
def test_share_of_lambda_is_a_share_of_mu_squared(budget: Privacy, share: float) -> None:
    noise = calibrate(budget, 7, lambda_share=share)
    assert noise.lambda_ is not None
    assert noise.lambda_**-2 / noise.mu**2 == pytest.approx(share)
    single = calibrate(budget, 7)
    assert single.lambda_ is None
    assert single.mu == pytest.approx(noise.mu)


@pytest.mark.parametrize(("epsilon", "delta", "rounds"), [(0.5, 1e-6, 50), (0.2, 1e-8, 120)])
def test_noise_of_the_paper(epsilon: float, delta: float, rounds: int) -> None:
    noise = calibrate(Privacy(epsilon, delta, per="round"), rounds, lambda_share=0.05, accounting="paper")
    factor = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    assert noise.model == pytest.approx(factor / math.sqrt(0.95))
    assert noise.lambda_ == pytest.approx(factor / math.sqrt(0.05))
    # Both releases of a round together are one classic release at epsilon: delta need not be split between them.
    assert gaussian_delta(epsilon, noise.mu) <= delta


def test_each_round_alone_is_private_to_the_budget_by_privacy_loss_distributions() -> None:
    budget = Privacy(1.5, 1e-5, per="round")
    noise = calibrate(budget, 40, lambda_share=0.1)
    assert noise.lambda_ is not None
    accountant = pld.PLDAccountant()
    accountant.compose(
        dp_accounting.ComposedDpEvent(
            [dp_accounting.GaussianDpEvent(noise.model), dp_accounting.GaussianDpEvent(noise.lambda_)]
        )
    )
    assert accountant.get_epsilon(budget.delta) == pytest.approx(budget.epsilon, rel=1e-3)
    assert calibrate(budget, 1, lambda_share=0.1) == noise


@pytest.mark.parametrize(("epsilon", "delta", "rounds"), [(0.5, 1e-6, 50), (0.2, 1e-8, 120)])
def test_calibrating_the_whole_run_saves_noise_at_the_same_stated_total(
    epsilon: float, delta: float, rounds: int
) -> None:
    paper = calibrate(Privacy(epsilon, delta, per="round"), rounds, lambda_share=0.05, accounting="paper")
    stated = spent(paper, rounds, delta, accounting="paper")
    whole_run = calibrate(Privacy(stated, delta), rounds, lambda_share=0.05)
    assert 0.70 < whole_run.model / paper.model < 0.86  # the specification's 15 to 30 % less


def test_calibrating_every_release_by_the_analytic_mechanism_costs_more_than_the_paper() -> None:
    mus = [gaussian_mu(math.sqrt(share) * 0.5, 1e-6) for share in (0.95, 0.05)]
    alone = NoiseMultipliers(model=1 / mus[0], lambda_=1 / mus[1])
    assert spent(alone, 50, 1e-6) == pytest.approx(4.25, abs=0.005)  # against the paper's 3.73


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rounds": 0}, "rounds: received 0"),
        ({"lambda_share": 1.0}, r"lambda_share: received 1.0; allowed: a number in \[0, 1\)"),
        ({"accounting": "rdp"}, "accounting: received 'rdp'; allowed: exact, paper"),
    ],
)
def test_bad_arguments_of_calibrate(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        calibrate(Privacy(1.0, 1e-6), **{"rounds": 10, **arguments})


def test_paper_noise_per_round_is_refused_from_epsilon_one_on() -> None:
    with pytest.raises(InvalidInput, match=r"epsilon: received 1.0.*proven below 1"):
        calibrate(Privacy(1.0, 1e-6, per="round"), 10, accounting="paper")


def test_noise_multipliers_are_checked() -> None:
    with pytest.raises(InvalidInput, match=r"noise.model: received 0"):
        NoiseMultipliers(model=0.0)
    with pytest.raises(InvalidInput, match=r"noise.lambda_: received -1"):
        NoiseMultipliers(model=1.0, lambda_=-1.0)

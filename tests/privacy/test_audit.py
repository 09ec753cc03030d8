"""The audit accepts a mechanism with the noise it claims and catches one with half of it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from fedhedge import InvalidInput
from fedhedge.privacy import Privacy, audit, calibrate, gaussian_delta, gaussian_mu, witness


def outcomes(mu: float, trials: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gaussian releases of unit noise on two tables that move the statistic by mu."""
    rng = np.random.default_rng(seed)
    return mu + rng.standard_normal(trials), rng.standard_normal(trials)


CLAIM = Privacy(1.0, 1e-5)
MU = gaussian_mu(CLAIM.epsilon, CLAIM.delta)


@pytest.mark.parametrize("seed", range(5))
def test_right_noise_stays_below_the_claim_and_half_of_it_is_caught(seed: int) -> None:
    # Confidence 0.9999: a sound mechanism fails one of these ten comparisons with probability below 0.001.
    sound = audit(*outcomes(MU, 400_000, seed), CLAIM.delta, confidence=0.9999)
    assert 0.5 < sound.epsilon <= CLAIM.epsilon
    assert 0.85 * MU < sound.mu <= MU
    broken = audit(*outcomes(2 * MU, 400_000, seed), CLAIM.delta, confidence=0.9999)
    assert broken.epsilon > CLAIM.epsilon
    assert broken.mu > 1.8 * MU


def test_direction_of_the_tables_does_not_matter() -> None:
    with_row, without = outcomes(1.0, 20_000, 0)
    for pair in ((with_row, without), (without, with_row), (-with_row, -without)):
        found = audit(*pair, 1e-5)
        assert found.epsilon > 1.5
        assert 0.9 < found.mu < 1.0


@pytest.mark.parametrize(("claim_mu", "claim_epsilon"), [(0.5, 0.4), (1e-9, 0.0)])
def test_bounds_hold_with_the_confidence_stated(claim_mu: float, claim_epsilon: float) -> None:
    # 200 audits of one sound mechanism at confidence 0.9: at most 20 failures expected, with standard deviation 4.2;
    # 37 is four deviations above. Without any leak, bounds that were chosen and judged on the same outcomes would fail.
    delta = gaussian_delta(claim_epsilon, claim_mu)
    failures = {"epsilon": 0, "mu": 0}
    for seed in range(200):
        found = audit(*outcomes(claim_mu, 300, seed), delta, confidence=0.9)
        failures["epsilon"] += found.epsilon > claim_epsilon
        failures["mu"] += found.mu > claim_mu
    assert max(failures.values()) <= 37


def test_what_delta_allows_is_not_held_against_epsilon() -> None:
    """A mechanism that gives the row away with probability 0.1, and nothing else, is (0, 0.1)-private and no better."""
    given_away = (np.random.default_rng(0).random(20_000) < 0.1).astype(float)
    hidden = np.zeros(20_000)
    assert audit(given_away, hidden, delta=0.1, confidence=0.999).epsilon == 0.0
    assert audit(given_away, hidden, delta=0.05, confidence=0.999).epsilon > 3


def test_few_runs_of_a_whole_training_catch_half_the_noise_through_mu() -> None:
    """Thirty rounds on the witness pair, scored by the move of the tables: the total is one Gaussian of mu_tot."""
    budget = Privacy(3.0, 1e-6)
    noise = calibrate(budget, 30)
    pair = witness(20, 3, 2, 1.0, 1.0)
    direction = (pair.rows[0] + pair.replacement) / np.linalg.norm(pair.rows[0] + pair.replacement)
    rng = np.random.default_rng(1)
    bounds = {}
    for factor in (1.0, 0.5):
        # The tables are one sensitivity apart along `direction` in each round; every coordinate gets the noise.
        releases = factor * noise.model * rng.standard_normal((2, 3000, 30, 3))
        releases[0] += direction
        scores = (releases @ direction).sum(axis=2)
        bounds[factor] = audit(scores[0], scores[1], budget.delta, confidence=0.999).mu
    claimed = gaussian_mu(budget.epsilon, budget.delta)
    assert bounds[1.0] <= claimed < bounds[0.5]


def test_equal_tables_show_nothing() -> None:
    same = np.zeros(100)
    assert audit(same, same, 1e-5).epsilon == 0.0
    assert audit(same, same, 1e-5).mu == 0.0
    certain = audit(np.ones(20_000), np.zeros(20_000), 1e-5)
    assert certain.epsilon > 7.5  # ln of 10,000 over the Clopper-Pearson bound of about 3.7 for zero counts
    assert certain.trials == 10_000


def test_bad_arguments() -> None:
    with pytest.raises(InvalidInput, match=r"table: received .*\(5,\).*20 scores or more"):
        audit(np.zeros(5), np.zeros(50), 1e-5)
    with pytest.raises(InvalidInput, match=r"neighbour: .*finite"):
        audit(np.zeros(50), np.full(50, np.nan), 1e-5)
    with pytest.raises(InvalidInput, match=r"confidence: received 1.0"):
        audit(np.zeros(50), np.zeros(50), 1e-5, confidence=1.0)

"""Several tails at once: one tail is FedeRage, two tails reach the optimum of a linear programme."""

import numpy as np
import pytest

import fedhedge as fh
from federations import same
from fedhedge.experiments.absolute_loss import LAW, averaged, optimum, risk
from least_squares import prepared, trained

Spectral = fh.algorithms.SpectralFedeRage
SOME = fh.availability.Independent(0.3)
WEIGHTS = tuple(LAW.weights())
SETTINGS = {"step": 0.005, "beta_step": 0.01, "cap": 10.0}


@pytest.mark.filterwarnings("ignore:FedeRage")
def test_one_tail_is_federage_bit_for_bit():
    settings = {"step": 0.05, "beta_step": 0.1}
    ours = trained(Spectral(alphas=(0.3,), gammas=(0.6,), **settings), SOME).state.server.pair
    plain = trained(fh.algorithms.FedeRage(alpha=0.3, gamma=0.6, **settings), SOME).state.server.pair
    assert same(ours.theta, plain.theta)
    assert same(ours.beta[0], plain.beta)
    assert float(plain.beta) > 0


def test_no_tail_is_fedavg_bit_for_bit():
    ours = trained(Spectral(step=0.1, gammas=(0.0, 0.0)), SOME).state
    assert same(ours.server.pair.theta, trained(fh.algorithms.FedAvg(step=0.1), SOME).state.server)


@pytest.mark.filterwarnings("ignore:FedeRage")
def test_two_tails_reach_their_optimum_and_one_tail_does_not():
    """A sharp tail and a broad one, against FedeRage with all weight on either."""
    alphas, gammas = (0.02, 0.6), (0.4, 0.5)
    best = risk(optimum(WEIGHTS, alphas, gammas), WEIGHTS, alphas, gammas)

    def excess(algorithm):
        return risk(averaged(algorithm, 20_000), WEIGHTS, alphas, gammas) - best

    assert 0 <= excess(Spectral(alphas=alphas, gammas=gammas, **SETTINGS)) < 0.01
    for alpha in alphas:
        assert excess(fh.algorithms.FedeRage(alpha=alpha, gamma=0.9, **SETTINGS)) > 0.03


def test_bound_on_the_weight_and_default_step():
    algorithm = Spectral(alphas=[0.1, 0.5], gammas=[0.3, 0.5])
    assert algorithm.kappa == pytest.approx(0.2 + 0.3 / 0.1 + 0.5 / 0.5)
    assert algorithm.step == pytest.approx(0.1 / 4.2)
    largest = 1 + np.sum(algorithm.excess(np.float32(1.0), np.zeros(2), None))
    assert float(largest) == pytest.approx(algorithm.kappa)


def test_warns_of_the_slowest_beta():
    """Of gamma 0.4 and 0.1 the second needs initial loss/(0.1 * 0.05 * 4 steps) rounds; a tail of everything, none."""
    algorithm = Spectral(alphas=(0.1, 0.3), gammas=(0.4, 0.1), beta_step=0.05)
    simulation = prepared(algorithm, SOME)
    needed = np.ceil(simulation.start.loss() / (0.1 * 0.05 * 4))
    assert any(f"about {needed:.0f} rounds" in text for text in simulation.warned)
    assert not prepared(Spectral(alphas=(1.0,), gammas=(0.1,)), SOME).warned


def test_history_and_costs():
    simulation = trained(Spectral(beta_step=0.1), SOME)
    assert simulation.costs["uplink"] == 2 + 2
    metrics = set(simulation.history.frame().metric)
    assert {"beta_1", "beta_2", "tail_rate_1", "tail_rate_2"} <= metrics


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alphas": (0.0, 0.1)}, r"alphas\[0\]: received 0\.0"),
        ({"gammas": (0.5, 0.6)}, r"gammas: received \(0\.5, 0\.6\); allowed: numbers whose sum is at most 1"),
        ({"gammas": (0.5,)}, r"gammas: .*as many numbers as alphas, at least one: 2"),
        ({"alphas": (), "gammas": ()}, "gammas: "),
        ({"alphas": 0.1}, r"alphas: received 0\.1; allowed: a list of numbers"),
        ({"alphas": np.array(0.1)}, r"alphas: received array\(0\.1\); allowed: a list of numbers"),
        ({"gammas": (0.1, 10**400)}, r"gammas\[1\]: received 1000"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(fh.InvalidInput, match=message):
        Spectral(**arguments)

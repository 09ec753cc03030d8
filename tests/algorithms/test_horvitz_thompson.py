"""Inverse-probability weights, the Horvitz-Thompson sum and counts of arrivals: where the averaged iterate settles."""

import functools

import numpy as np
import pytest

import fedhedge as fh
from enumeration_of_subsets import SKEWED, SUBSETS
from parabolas import STEP, A, B, finished, mean_balance

methods = fh.algorithms
INCLUSION = SKEWED.inclusion_probabilities()
FEDAVG = methods.FedAvg(step=STEP)
ROUNDS = 40_000


@functools.cache
def average(algorithm):
    """The mean of the last three quarters of the iterates."""
    simulation = finished(algorithm, SKEWED, rounds=ROUNDS)
    return float(simulation.result().average_params)


def test_the_averages_are_apart():
    plain = mean_balance(SUBSETS, lambda who: np.full(len(who), 1 / len(who)))
    everyone = mean_balance(SUBSETS, lambda who: 1 / INCLUSION[who])
    halfway = mean_balance(SUBSETS, lambda who: (1 / INCLUSION[who]) / (1 / INCLUSION[who]).sum())
    assert min(abs(plain - everyone), abs(plain - halfway), abs(halfway - everyone)) > 0.05
    assert average(FEDAVG) == pytest.approx(plain, abs=0.01)


def test_inverse_probability_settles_between():
    expected = mean_balance(SUBSETS, lambda who: (1 / INCLUSION[who]) / (1 / INCLUSION[who]).sum())
    assert average(methods.InverseProbability(FEDAVG, law=SKEWED)) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("method", [methods.HorvitzThompson(FEDAVG, law=SKEWED), methods.ArrivalWeights(FEDAVG)])
def test_horvitz_thompson_settles_where_everyone_would(method):
    """sum over all i of r_i (x - b_i) = 0, r_i = 1 - (1 - eta a_i)^H: FedAvg's point with everyone."""
    pull = 1 - (1 - STEP * A) ** 4
    assert average(method) == pytest.approx(pull @ B / pull.sum(), abs=0.01)


def test_with_one_local_step_that_is_the_unweighted_optimum():
    method = methods.HorvitzThompson(methods.FedAvg(step=0.005), law=SKEWED)
    found = float(finished(method, SKEWED, rounds=ROUNDS, steps=1).result().average_params)
    assert found == pytest.approx(A @ B / A.sum(), abs=0.015)


def test_with_everyone_the_sum_is_the_mean():
    everyone = fh.availability.Everyone()
    runs = [finished(m, everyone).result() for m in (methods.HorvitzThompson(FEDAVG, law=everyone), FEDAVG)]
    assert float(runs[0].params) == pytest.approx(float(runs[1].params), abs=1e-6)


def test_counts_are_those_of_the_participation_and_the_cap_holds():
    simulation = finished(methods.ArrivalWeights(FEDAVG, cap=1e-6), SKEWED)
    own = simulation.state.server.own
    who = simulation.result().participation
    np.testing.assert_array_equal(own.counts, np.bincount(who["client"], minlength=5))
    assert float(own.rounds) == who["round"].nunique()
    # Weights of at most 1e-6 leave the model within 100 such steps of its start.
    assert 0 < abs(float(simulation.result().params)) < 1e-3


@pytest.mark.filterwarnings("ignore:.*never lets")
def test_a_client_that_never_comes_is_reported_and_no_division_by_zero():
    law = fh.availability.Independent([0.9, 0.6, 0.0])
    for method in (methods.InverseProbability(FEDAVG, law=law), methods.HorvitzThompson(FEDAVG, law=law)):
        simulation = finished(method, law, count=3)
        assert "never lets 1 of 3 clients through (2)" in simulation.warned[0]
        assert np.isfinite(float(simulation.result().params))

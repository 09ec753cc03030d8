"""FedAvot: expected weights by enumerating subsets, feasibility, and where it settles."""

import itertools
import math

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedhedge as fh
from enumeration_of_subsets import SKEWED, SUBSETS
from fedhedge.algorithms import transport
from fedhedge.algorithms.base import Cohort, Start
from fedhedge.algorithms.weighting import normalised
from parabolas import STEP, finished, mean_balance

pytestmark = pytest.mark.filterwarnings("ignore:FedAvot")
FedAvot = fh.algorithms.FedAvot
FEDAVG = fh.algorithms.FedAvg(step=STEP)


def start(clients):
    return Start(jnp.zeros(()), clients, np.full(clients, 1 / clients), lambda: 1.0)


def weights_on(method, own, subset):
    """The weights that the method gives the clients of one set, with one empty slot behind them."""
    clients = len(own.log_u)
    here = np.append(np.ones(len(subset)), 0.0)
    cohort = Cohort(jnp.array([*subset, clients]), jnp.array(here / len(subset)), jnp.zeros(len(subset) + 1))
    weights, _ = normalised(method.arrived(own, cohort), cohort.weights > 0)
    return np.asarray(weights, np.float64)[:-1]


def expected_weights(method, subsets):
    """E[weight of i | some client in S has a weight] over a table of subsets."""
    clients = 1 + max(max(subset, default=0) for subset in subsets)
    own, total = method.init_own(start(clients)), np.zeros(clients)
    for subset, probability in subsets.items():
        if subset:
            total[list(subset)] += probability * weights_on(method, own, subset)
    return total / total.sum()


def successive(prior, size):
    """P(S) of drawing one by one, over all orders."""
    law = dict.fromkeys(itertools.combinations(range(len(prior)), size), 0.0)
    for order in itertools.permutations(range(len(prior)), size):
        left, probability = sum(prior), 1.0
        for i in order:
            probability *= prior[i] / left
            left -= prior[i]
        law[tuple(sorted(order))] += probability
    return law


PRIOR = (8.0, 4.0, 2.0, 1.0, 0.5, 0.25)
FIXED = fh.availability.FixedSize(PRIOR, size=3)


@pytest.mark.parametrize(
    ("law", "subsets", "importance"),
    [
        (SKEWED, SUBSETS, (0.2, 0.3, 0.2, 0.2, 0.1)),
        (FIXED, successive(PRIOR, 3), (0.2, 0.2, 0.2, 0.2, 0.15, 0.05)),
        (fh.availability.Subsets({(0, 1): 0.5, (1, 2): 0.5}), {(0, 1): 0.5, (1, 2): 0.5}, (0.25, 0.5, 0.25)),
        (SKEWED, SUBSETS, (0.5, 0.0, 0.5, 0.0, 0.0)),
    ],
    ids=["variable size", "fixed size", "overlapping pairs", "zeros"],
)
def test_expected_weight_is_the_importance_when_feasible(law, subsets, importance):
    np.testing.assert_allclose(
        expected_weights(FedAvot(law=law, importance=importance), subsets), importance, atol=1e-5
    )


def test_many_clients_by_draws_and_the_expectation_over_other_draws():
    law = fh.availability.FixedSize(tuple(range(10, 24)), size=5)
    importance = np.linspace(1.0, 2.0, 14)[::-1]
    method = FedAvot(law=law, importance=tuple(importance))
    own, present = method.init_own(start(14)), law.schedule(5, 0, 3000)
    u = np.exp(np.asarray(own.log_u, np.float64))
    weights = present * u / (present @ u)[:, None]
    error = weights.std(axis=0) / math.sqrt(len(weights))
    # The plan was fitted on 20,000 draws of its own, whose error adds to that of these 3,000.
    assert (np.abs(weights.mean(axis=0) - importance / importance.sum()) <= 5 * error).all()


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=4, max_size=4), st.lists(st.integers(1, 9), min_size=6, max_size=6))
def test_importance_made_from_a_plan_is_reached(potentials, masses):
    """Any u gives a feasible importance; a solver that starts from ones has to come back to its expected weights."""
    pairs = list(itertools.combinations(range(4), 2))
    law = fh.availability.Subsets({pair: mass / sum(masses) for pair, mass in zip(pairs, masses, strict=True)})
    u, importance = np.array(potentials, float), np.zeros(4)
    for pair, mass in zip(pairs, masses, strict=True):
        importance[list(pair)] += mass / sum(masses) * u[list(pair)] / u[list(pair)].sum()
    plan = transport.solve(law, tuple(importance))
    np.testing.assert_allclose(plan.reached, importance, atol=2e-7)
    ratio = np.exp(plan.log_u) / u
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-3)


def test_infeasible_importance_is_reported_and_the_most_possible_is_given():
    law = fh.availability.Independent([0.9, 0.9, 0.05])
    simulation = finished(FedAvot(FEDAVG, law=law), law, count=3)
    there = 0.05 / (1 - 0.1 * 0.1 * 0.95)
    assert f"client 2: 0.333 > {there:.3g}" in simulation.warned[0]
    assert "miss the importance by up to 0.2" in simulation.warned[1]
    errors = simulation.result().history.query("metric == 'transport_error'")["value"]
    assert errors.to_numpy() == pytest.approx(1 / 3 - there, abs=2e-3)


def test_a_client_that_never_comes_and_a_law_of_single_clients():
    law = fh.availability.Subsets({(0,): 0.7, (1,): 0.3}, clients=3)
    simulation = finished(FedAvot(FEDAVG, law=law), law, count=3)
    assert "client 2: 0.333 > 0" in simulation.warned[0]
    assert np.isfinite(float(simulation.result().params))


def test_importance_of_another_length_is_refused():
    with pytest.raises(fh.InvalidInput, match="importance: received 2; allowed: 5 numbers"):
        finished(FedAvot(FEDAVG, law=SKEWED, importance=(0.5, 0.5)), SKEWED)
    with pytest.raises(fh.InvalidInput, match=r"law\.clients: received 5; allowed: 6"):
        finished(FedAvot(FEDAVG, law=FIXED), SKEWED)


@pytest.mark.parametrize("importance", [(0.2, 0.3, 0.2, 0.2, 0.1), (0.6, 0.0, 0.4, 0.0, 0.0)])
def test_settles_where_the_importance_says(importance):
    """Rounds in which nobody of importance comes change nothing."""
    found = finished(FedAvot(FEDAVG, law=SKEWED, importance=importance), SKEWED, rounds=20_000).result()
    expected = mean_balance({tuple(range(5)): 1.0}, lambda who: np.array(importance))
    plain = mean_balance(SUBSETS, lambda who: np.full(len(who), 1 / len(who)))
    assert float(found.average_params) == pytest.approx(expected, abs=0.01)
    assert abs(plain - expected) > 0.05


@pytest.mark.parametrize("importance", [np.array(0.5), 0.5, [], [0.0, 0.0], [1.0, 10**400], [1.0, np.inf], "12"])
def test_importance_that_is_no_list_of_numbers_is_refused(importance):
    with pytest.raises(fh.InvalidInput, match=r"^importance"):
        FedAvot(law=SKEWED, importance=importance)


def test_importance_in_any_unit():
    for unit in (1e-308, 1.0, 8e307):
        found = FedAvot(law=SKEWED, importance=unit * np.array([1.0, 2.0, 1.0, 2.0, 2.0])).importance
        np.testing.assert_allclose(found, np.array([1.0, 2.0, 1.0, 2.0, 2.0]) / 8, rtol=1e-12)

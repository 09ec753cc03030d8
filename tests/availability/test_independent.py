import numpy as np
import pytest
from enumeration import assert_frequencies, assert_results, assert_shares, draws, independent
from hypothesis import given, settings
from hypothesis import strategies as st

from fedhedge.availability import Everyone, Independent
from fedhedge.checks import InvalidInput

PROBABILITIES = st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0])), min_size=1, max_size=7).filter(
    lambda q: max(q) > 1e-6
)


@settings(max_examples=100, deadline=None)
@given(PROBABILITIES)
def test_results_against_all_subsets(probabilities):
    assert_results(Independent(probabilities), independent(probabilities))


def test_weights_of_thirty_clients_against_the_poisson_binomial_programme():
    q = np.random.default_rng(1).uniform(0, 0.4, 30)
    expected = []
    for i in range(30):
        others = np.ones(1)
        for p in np.delete(q, i):
            others = np.convolve(others, [1 - p, p])
        expected.append(q[i] * (others / (1 + np.arange(30))).sum())
    law = Independent(q)
    np.testing.assert_allclose(law.weights(), np.array(expected) / (1 - np.prod(1 - q)), rtol=1e-12)
    assert law.empty_probability() == pytest.approx(np.prod(1 - q), rel=1e-13)


def test_equal_probabilities_have_binomial_closed_forms():
    law = Independent(0.1).bind(30)
    np.testing.assert_allclose(law.weights(), 1 / 30, rtol=1e-12)
    assert law.empty_probability() == pytest.approx(0.9**30, rel=1e-13)
    assert law.sizes()[1] == pytest.approx(30 * 0.1 * 0.9**29, rel=1e-12)


def test_a_thousand_clients():
    q = np.random.default_rng(2).uniform(0, 1, 1000)
    weights = Independent(q).weights()
    assert weights.sum() == pytest.approx(1, rel=1e-12)
    # For a large federation 1 / |S| is nearly 1 / E|S|: p_i is q_i / sum q to first order.
    np.testing.assert_allclose(weights, q / q.sum(), rtol=5e-3)


def test_sampler_has_the_computed_frequencies_and_weights():
    law = Independent(np.linspace(0, 0.3, 30))
    present = draws(law)
    assert_frequencies(present, np.linspace(0, 0.3, 30))
    assert_shares(present, law.weights())
    empty = ~present.any(axis=1, keepdims=True)
    assert_frequencies(empty, np.array([law.empty_probability()]))


def test_certain_clients_are_everyone():
    assert (Independent(1).bind(4).weights() == Everyone(4).weights()).all()
    assert draws(Independent([1.0, 0.0]), 100).tolist() == [[True, False]] * 100


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ([0.1, 1.2], r"probabilities\[1\]: received 1.2; allowed: a number in \[0, 1\]"),
        ([0.1, -0.5], r"probabilities\[1\]: received -0.5"),
        ([0.0, 0.0], "probabilities: .*nobody would ever get through"),
        (0, "probabilities: received 0"),
        (["0.1"], "probabilities: received"),
        ([True, False], "probabilities: received"),
        ([[0.1], [0.2]], "probabilities: received"),
        ([[0.1], [0.2, 0.3]], "probabilities: received"),
    ],
)
def test_bad_arguments(probabilities, message):
    with pytest.raises(InvalidInput, match=message):
        Independent(probabilities)

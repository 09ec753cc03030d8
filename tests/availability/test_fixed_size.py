import numpy as np
import pytest
from enumeration import assert_frequencies, assert_results, draws, inclusion, successive
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fedhedge.availability import Everyone, FixedSize, prior_for
from fedhedge.checks import InvalidInput

PAPER_PRIOR = [0.036753] * 27 + [0.003445, 0.002509, 0.001703]
PAPER_INCLUSION = [0.11023] * 27 + [0.0107, 0.0078, 0.0053]


@st.composite
def priors(draw):
    exponents = draw(st.lists(st.floats(-8, 8), min_size=1, max_size=6))
    prior = [10.0**e for e in exponents] + [0.0] * draw(st.integers(0, 1))
    return prior, draw(st.integers(1, len(exponents)))


@settings(max_examples=60, deadline=None)
@given(priors())
def test_results_against_all_ordered_draws(case):
    prior, size = case
    assert_results(FixedSize(prior, size), successive(prior, size))


@settings(max_examples=30, deadline=None)
@given(priors())
def test_rare_clients_are_right_relative_to_their_own_probability(case):
    prior, size = case
    computed = FixedSize(prior, size).inclusion_probabilities()
    np.testing.assert_allclose(computed, inclusion(successive(prior, size), len(prior)), rtol=1e-9, atol=0)


@settings(max_examples=25, deadline=None)
@given(priors(), st.lists(st.floats(0, 2), min_size=7, max_size=7))
def test_generating_function_against_all_subsets(case, values):
    prior, size = case
    z = np.array(values[: len(prior)])
    law = successive(prior, size)
    value, gradient = FixedSize(prior, size).generating(z[None])
    expected = sum(p * np.prod(z[list(s)]) for s, p in law.items())
    assert value[0] == pytest.approx(expected, rel=1e-9, abs=1e-12)
    for i in range(len(prior)):
        others = [(p, [j for j in s if j != i]) for s, p in law.items() if i in s]
        assert gradient[0, i] == pytest.approx(sum(p * np.prod(z[j]) for p, j in others), rel=1e-9, abs=1e-12)


def test_published_numbers():
    six = FixedSize([8, 4, 2, 1, 0.5, 0.25], 3).inclusion_probabilities()
    np.testing.assert_allclose(six[3:], [0.3366, 0.1747, 0.0889], atol=5e-5)
    np.testing.assert_allclose(FixedSize(PAPER_PRIOR, 3).inclusion_probabilities(), PAPER_INCLUSION, atol=5e-6)


@pytest.mark.parametrize(("clients", "size"), [(1, 1), (7, 3), (30, 3), (30, 30)])
def test_uniform_is_size_over_clients(clients, size):
    law = FixedSize(size=size).bind(clients)
    assert (law.inclusion_probabilities() == size / clients).all()
    np.testing.assert_allclose(law.weights(), 1 / clients, rtol=1e-15)
    # The closed form agrees with the integral that every other prior goes through.
    _, gradient = law.generating(np.ones((1, clients)))
    np.testing.assert_allclose(gradient[0], size / clients, rtol=1e-12)


@pytest.mark.parametrize(("clients", "size"), [(200, 20), (200, 180)])
def test_probabilities_sum_to_the_size_in_larger_federations(clients, size):
    prior = np.random.default_rng(3).lognormal(0, 3, clients)
    probabilities = FixedSize(prior, size).inclusion_probabilities()
    assert probabilities.sum() == pytest.approx(size, rel=1e-11)
    order = np.argsort(prior)
    assert (np.diff(probabilities[order]) > -1e-12).all()


def test_priors_thirty_orders_of_magnitude_apart():
    # With r = 1, 10^-10, 10^-20, 10^-30 and two draws, the order of the first draws is all but certain.
    probabilities = FixedSize([1, 1e-10, 1e-20, 1e-30], 2).inclusion_probabilities()
    np.testing.assert_allclose(probabilities, [1, 1, 1e-10, 1e-20], rtol=1e-9)


def test_sampler_has_the_computed_frequencies():
    law = FixedSize(PAPER_PRIOR, 3)
    present = draws(law)
    assert (present.sum(axis=1) == 3).all()
    assert_frequencies(present, law.inclusion_probabilities())


def test_sampler_has_the_enumerated_law_of_subsets():
    prior, size = [5.0, 2.0, 1.0, 0.5], 2
    law = successive(prior, size)
    codes = draws(FixedSize(prior, size)) @ (2 ** np.arange(4))
    hits = np.stack([codes == sum(2**i for i in subset) for subset in law], axis=1)
    assert hits.any(axis=1).all()
    assert_frequencies(hits, np.array(list(law.values())))


def test_a_client_with_prior_zero_never_gets_through():
    law = FixedSize([1, 0, 2, 3], 3)
    assert law.inclusion_probabilities().tolist() == [1, 0, 1, 1]
    assert not draws(law, 50)[:, 1].any()


def test_all_clients_is_everyone():
    assert (FixedSize([3, 1, 2], 3).weights() == Everyone(3).weights()).all()


def test_the_unit_of_the_prior_is_free():
    assert FixedSize([1, 2, 4], 2) == FixedSize([0.5, 1, 2], 2)
    assert FixedSize([1, 2, 4], 2) != FixedSize([1, 2, 4], 1)


def test_size_above_the_clients_names_both():
    message = r"^size: received 40; allowed: a whole number from 1 to 30 \(there are 30 clients\)$"
    with pytest.raises(InvalidInput, match=message):
        FixedSize(size=40).bind(30)
    with pytest.raises(InvalidInput, match=message):
        FixedSize([1.0] * 30, 40)


@pytest.mark.parametrize(
    ("prior", "size", "message"),
    [
        ([1, -2, 3], 2, r"prior\[1\]: received -2.0; allowed: a number, 0 or more"),
        ([1, float("nan"), 3], 2, r"prior\[1\]: received nan"),
        ([1, 0, 0], 2, r"prior: .* at least 2 positive entries \(size=2, 1 are positive\)"),
        ("heavy", 2, "prior: received 'heavy'; allowed: a list with one number per client"),
        ([], 1, "prior: received"),
        (None, 0, "size: received 0; allowed: a whole number, 1 or more"),
        (None, 2.5, "size: received 2.5"),
    ],
)
def test_bad_arguments(prior, size, message):
    with pytest.raises(InvalidInput, match=message):
        FixedSize(prior, size)


def test_published_prior_for_the_sporadic_law():
    inclusion = np.array(PAPER_INCLUSION)
    inclusion[:27] = (3 - inclusion[27:].sum()) / 27
    np.testing.assert_allclose(prior_for(inclusion, 3), PAPER_PRIOR, atol=5e-7)


@st.composite
def targets(draw):
    clients = draw(st.integers(2, 8))
    size = draw(st.integers(1, clients - 1))
    prior = [10.0 ** draw(st.floats(-3, 3)) for _ in range(clients)]
    return prior, size


@settings(max_examples=30, deadline=None)
@given(targets())
def test_prior_for_gives_the_wanted_probabilities_back(case):
    prior, size = case
    wanted = FixedSize(prior, size).inclusion_probabilities()
    assume(wanted.max() < 1 - 1e-9)
    found = FixedSize(prior_for(wanted, size), size)
    np.testing.assert_allclose(found.inclusion_probabilities(), wanted, rtol=1e-9)


@pytest.mark.parametrize(
    ("wanted", "size"), [([1 - 1e-9, 0.5, 0.5, 1e-9], 2), ([0.999] * 99 + [0.099], 99), ([1e-6] * 20 + [1 - 2e-5], 1)]
)
def test_prior_for_clients_that_come_almost_always_or_never(wanted, size):
    found = FixedSize(prior_for(wanted, size), size)
    np.testing.assert_allclose(found.inclusion_probabilities(), wanted, rtol=1e-10)


def test_prior_for_keeps_zeros():
    found = prior_for([0.5, 0, 0.7, 0.8], 2)
    assert found[1] == 0
    assert found.sum() == pytest.approx(1)
    np.testing.assert_allclose(FixedSize(found, 2).inclusion_probabilities(), [0.5, 0, 0.7, 0.8], rtol=1e-10)


@pytest.mark.parametrize(
    ("inclusion", "size", "message"),
    [
        ([0.5, 0.4], 1, "inclusion: .* sum to 1 .these sum to 0.9"),
        ([1.0, 0.5, 0.5], 2, r"inclusion\[0\]: received 1.0; allowed: a number in \[0, 1\)"),
        ([1.2, -0.2], 1, r"inclusion\[0\]: received 1.2"),
        ([0.5, 0.5], 3, "size: received 3"),
    ],
)
def test_prior_for_refuses_what_no_prior_gives(inclusion, size, message):
    with pytest.raises(InvalidInput, match=message):
        prior_for(inclusion, size)

import numpy as np
import pytest
from enumeration import assert_frequencies, assert_results, draws
from hypothesis import given, settings
from hypothesis import strategies as st

from fedhedge.availability import Dropout, Independent, Subsets
from fedhedge.checks import InvalidInput

LISTED = st.dictionaries(
    st.frozensets(st.integers(0, 4), max_size=5).map(lambda s: tuple(sorted(s))),
    st.floats(0.01, 1),
    min_size=1,
    max_size=8,
).filter(lambda table: any(table))


@settings(max_examples=60, deadline=None)
@given(LISTED)
def test_results_against_sums_over_the_table(table):
    total = sum(table.values())
    normalised = {subset: p / total for subset, p in table.items()}
    assert_results(Subsets(normalised, clients=5), normalised)


def test_the_example_by_hand():
    law = Subsets({(0, 1): 0.7, (2,): 0.3})
    assert law.clients == 3
    np.testing.assert_allclose(law.inclusion_probabilities(), [0.7, 0.7, 0.3])
    np.testing.assert_allclose(law.weights(), [0.35, 0.35, 0.3])
    assert law.empty_probability() == 0


def test_weights_are_given_that_somebody_comes():
    law = Subsets({(): 0.5, (0, 1): 0.25, (1,): 0.25}, clients=3)
    np.testing.assert_allclose(law.weights(), [0.25, 0.75, 0])
    assert law.empty_probability() == 0.5
    np.testing.assert_allclose(law.sizes(), [0.5, 0.25, 0.25])


def test_the_table_of_independent_clients_is_their_law():
    law = Subsets({(): 0.06, (0,): 0.14, (1,): 0.24, (0, 1): 0.56})
    same = Independent([0.7, 0.8])
    np.testing.assert_allclose(law.weights(), same.weights(), rtol=1e-13)
    np.testing.assert_allclose(Dropout(law, 0.3).weights(), Dropout(same, 0.3).weights(), rtol=1e-13)


def test_keys_of_a_configuration_file():
    assert Subsets({"0,1": 0.7, "2": 0.2, "": 0.1}) == Subsets({(): 0.1, (1, 0): 0.7, (2,): 0.2})


def test_sampler_has_the_table():
    table = {(): 0.1, (0, 1): 0.6, (1, 2): 0.05, (2,): 0.25}
    codes = draws(Subsets(table)) @ np.array([1, 2, 4])
    hits = np.stack([codes == sum(2**i for i in subset) for subset in table], axis=1)
    assert hits.any(axis=1).all()
    assert_frequencies(hits, np.array(list(table.values())))


@pytest.mark.parametrize(
    ("table", "clients", "message"),
    [
        ({(0,): 0.5, (1,): 0.4}, None, "probabilities: received 0.9; allowed: probabilities that sum to 1"),
        ({(0,): 0.5, "0": 0.5}, None, "each subset once"),
        ({(0, 0): 1.0}, None, "subset: received"),
        ({"0,x": 1.0}, None, "subset: received '0,x'"),
        ({0: 1.0}, None, "subset: received 0"),
        ({(0,): 1.5, (1,): -0.5}, None, r"probabilities\[\(0,\)\]: received 1.5"),
        ({(): 1.0}, 3, "at least one subset that is not empty"),
        ({(0, 3): 1.0}, 3, "clients: received 3; allowed: a whole number, 4 or more"),
        ({(-1,): 1.0}, None, "client in subset"),
        ({}, None, "probabilities: received"),
        ([0.5], None, "probabilities: received"),
    ],
)
def test_bad_arguments(table, clients, message):
    with pytest.raises(InvalidInput, match=message):
        Subsets(table, clients)

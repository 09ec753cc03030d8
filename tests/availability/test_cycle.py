import numpy as np
import pytest
from enumeration import assert_frequencies, assert_results, independent, mixture
from hypothesis import given, settings
from hypothesis import strategies as st

from fedhedge.availability import Cycle, Independent
from fedhedge.checks import InvalidInput


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(1, 5), st.data())
def test_results_are_averages_over_the_period(period, clients, data):
    row = st.lists(st.floats(0, 1), min_size=clients, max_size=clients)
    table = data.draw(st.lists(row, min_size=period, max_size=period).filter(lambda q: np.max(q) > 1e-3))
    assert_results(Cycle(table), mixture([independent(q) for q in table]))


def test_weights_are_over_rounds_in_which_somebody_comes():
    # Client 0 alone in the first hour, both in the second, nobody in the third.
    law = Cycle([[1, 0], [1, 1], [0, 0]])
    np.testing.assert_allclose(law.weights(), [0.75, 0.25])
    assert law.empty_probability() == pytest.approx(1 / 3)


def test_every_hour_has_its_own_probabilities():
    table = np.random.default_rng(7).uniform(0, 1, (4, 3))
    present = Cycle(table).schedule(3, 0, 10_000)
    for hour in range(4):
        assert_frequencies(present[hour::4], table[hour])


def test_a_cycle_of_equal_hours_is_independent():
    q = [0.1, 0.4, 0.7]
    assert (Cycle([q, q]).schedule(0, 0, 100) == Independent(q).schedule(0, 0, 100)).all()
    np.testing.assert_allclose(Cycle([q, q]).weights(), Independent(q).weights(), rtol=1e-14)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[0.1, 0.2], [0.3, 1.5]], r"probabilities\[1\]\[1\]: received 1.5"),
        ([0.1, 0.2], "probabilities: .*a table with one row per round"),
        ([[0.1, 0.2], [0.3]], "probabilities: .*all rows of one length"),
        ([[0, 0], [0, 0]], "nobody would ever get through"),
    ],
)
def test_bad_arguments(table, message):
    with pytest.raises(InvalidInput, match=message):
        Cycle(table)

import numpy as np
import pytest
from enumeration import (
    assert_frequencies,
    assert_results,
    assert_shares,
    draws,
    grouped,
    independent,
    mixture,
    successive,
    thinned,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from fedhedge.availability import Cycle, Dropout, Everyone, FixedSize, Groups, Independent, Markov, Subsets, presets
from fedhedge.checks import InvalidInput

RATES = st.lists(st.floats(0, 0.99), min_size=4, max_size=4)
PRIOR = [4.0, 2.0, 1.0, 0.1]
GROUPS = [[0, 3], [1], [2]]
TABLE = {(): 0.1, (0, 1): 0.5, (1, 2, 3): 0.4}
HOURS = [[0.5, 0.1, 0.9, 1.0], [0.2, 0.0, 0.3, 0.4]]
LAWS = {
    "fixed size": (FixedSize(PRIOR, 2), successive(PRIOR, 2)),
    "independent": (Independent([0.1, 0.5, 1.0, 0.3]), independent([0.1, 0.5, 1.0, 0.3])),
    "subsets": (Subsets(TABLE), TABLE),
    "groups": (Groups(GROUPS, FixedSize([1, 2, 3], 2)), grouped(GROUPS, successive([1, 2, 3], 2))),
    "cycle": (Cycle(HOURS), mixture([independent(q) for q in HOURS])),
    "markov": (Markov(0.3, [0.1, 0.2, 0.3, 0.9]), independent([0.75, 0.6, 0.5, 0.25])),
}


@pytest.mark.parametrize("name", LAWS)
@settings(max_examples=10, deadline=None)
@given(rates=RATES)
def test_results_against_all_subsets_of_all_subsets(name, rates):
    law, enumerated = LAWS[name]
    assert_results(Dropout(law, rates), thinned(enumerated, rates))


def test_dropout_inside_groups_inside_dropout():
    inner = thinned(successive([1, 2, 3], 2), [0.2, 0.4, 0.6])
    law = Dropout(Groups(GROUPS, Dropout(FixedSize([1, 2, 3], 2), [0.2, 0.4, 0.6])), 0.5)
    assert_results(law, thinned(grouped(GROUPS, inner), [0.5] * 4))


def test_one_rate_for_all_keeps_the_weights_of_a_fixed_size():
    law = presets.sporadic()
    np.testing.assert_allclose(Dropout(law, 0.4).weights(), law.weights(), rtol=1e-10)
    assert Dropout(law, 0.4).empty_probability() == pytest.approx(0.4**3, rel=1e-10)


def test_schedule_is_the_selection_less_the_clients_lost():
    law = presets.sporadic()
    rate = np.linspace(0, 0.9, 30)
    selected, left = law.schedule(1, 0, 10_000), Dropout(law, rate).schedule(1, 0, 10_000)
    assert not (left & ~selected).any()
    for i in range(30):
        assert_frequencies(left[selected[:, i], i][:, None], 1 - rate[i : i + 1])
    assert_shares(left, Dropout(law, rate).weights())


def test_losses_of_two_layers_are_independent():
    present = Dropout(Dropout(Everyone(3), 0.5), 0.5).schedule(0, 0, 10_000)
    assert_frequencies(present, np.full(3, 0.25))


def test_losses_are_independent_of_the_selection():
    # The same numbers for both would lose only clients that were not selected.
    present = Dropout(Independent(0.5).bind(3), 0.5).schedule(0, 0, 10_000)
    assert_frequencies(present, np.full(3, 0.25))


def test_the_memory_of_the_law_stays():
    law = Markov([0.02] * 3, [0.02] * 3)
    assert (Dropout(law, 0).schedule(8, 50, 200) == law.schedule(8, 50, 200)).all()


def test_single_rounds():
    law = Dropout(FixedSize(PRIOR, 2), [0.1, 0.2, 0.3, 0.9])
    assert_frequencies(draws(law), law.inclusion_probabilities())


def test_the_largest_round_leaves_out_clients_that_never_deliver():
    assert Dropout(Everyone(4), [1, 1, 0.5, 0]).largest() == 2
    assert Dropout(FixedSize(PRIOR, 2), [1, 1, 0.5, 0]).largest() == 2


@pytest.mark.parametrize(
    ("law", "rate", "message"),
    [
        (Everyone(3), 1.5, "rate: received 1.5"),
        (Everyone(3), [0.1, 0.2], "rate: .*one number, or 3, one per client"),
        (Everyone(3), 1, "rate: received 1.0; allowed: a rate below 1"),
        (Independent([0.5, 0.0]), [1, 0], "rate: .*a client that the law lets through"),
        (FixedSize(), [0.1, 0.2], "size: received 3; allowed: a whole number from 1 to 2"),
        ("FixedSize", 0.1, "law: received 'FixedSize'"),
    ],
)
def test_bad_arguments(law, rate, message):
    with pytest.raises(InvalidInput, match=message):
        Dropout(law, rate)

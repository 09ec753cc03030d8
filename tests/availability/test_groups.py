import numpy as np
import pytest
from enumeration import assert_results, grouped, independent, successive
from hypothesis import given, settings
from hypothesis import strategies as st

from fedhedge.availability import FixedSize, Groups, Independent, Subsets
from fedhedge.checks import InvalidInput


@st.composite
def memberships(draw):
    clients = draw(st.integers(2, 7))
    order = draw(st.permutations(range(clients)))
    cuts = sorted(draw(st.sets(st.integers(1, clients - 1), min_size=1)))
    return [list(order[a:b]) for a, b in zip([0, *cuts], [*cuts, clients], strict=True)]


@settings(max_examples=50, deadline=None)
@given(memberships(), st.lists(st.floats(0.01, 1), min_size=7, max_size=7))
def test_groups_that_come_by_chance(groups, values):
    q = values[: len(groups)]
    assert_results(Groups(groups, Independent(q)), grouped(groups, independent(q)))


@settings(max_examples=25, deadline=None)
@given(memberships(), st.lists(st.floats(0.1, 10), min_size=7, max_size=7), st.data())
def test_a_fixed_number_of_groups(groups, values, data):
    prior, size = values[: len(groups)], data.draw(st.integers(1, len(groups)))
    assert_results(Groups(groups, FixedSize(prior, size)), grouped(groups, successive(prior, size)))


def test_groups_that_exclude_each_other():
    law = Groups([[0, 1], [2, 3, 4]], Subsets({(0,): 0.4, (1,): 0.6}))
    np.testing.assert_allclose(law.weights(), [0.2, 0.2, 0.2, 0.2, 0.2])
    np.testing.assert_allclose(law.sizes(), [0, 0, 0.4, 0.6], atol=1e-15)
    assert law.largest() == 3


def test_members_share_every_round():
    present = Groups([[0, 2], [1, 3]], Independent(0.5)).schedule(1, 0, 200)
    assert (present[:, 0] == present[:, 2]).all()
    assert (present[:, 1] == present[:, 3]).all()
    assert (present[:, 0] != present[:, 1]).any()


def test_the_largest_round_leaves_out_groups_that_never_come():
    assert Groups([[0, 1, 2, 3], [4], [5, 6]], Independent([0, 0.5, 0.5])).largest() == 3


@pytest.mark.parametrize(
    ("groups", "law", "message"),
    [
        ([[0, 1], [1, 2]], Independent(0.5), "groups: .*every client from 0 to 3 in exactly one group"),
        ([[0, 1], [3]], Independent(0.5), "groups: .*exactly one group"),
        ([[0, 1], []], Independent(0.5), r"groups\[1\]: received \[\]"),
        ([], Independent(0.5), "groups: received"),
        ("ab", Independent(0.5), "groups: received 'ab'"),
        ([[0], [1]], Independent([0.5, 0.5, 0.5]), "law.clients: received 2; allowed: 3"),
        ([[0], [1]], 0.5, "law: received 0.5"),
    ],
)
def test_bad_arguments(groups, law, message):
    with pytest.raises(InvalidInput, match=message):
        Groups(groups, law)

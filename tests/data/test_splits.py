"""Splits drawn within each client."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fedhedge import InvalidInput
from fedhedge.data import splits

FRACTIONS = st.sampled_from([(0.0, 0.0), (0.1, 0.2), (0.0, 0.5), (0.45, 0.45), (0.3, 0.0)])


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=80), FRACTIONS, st.integers(0, 99)
)
def test_numbers_are_exact_and_classes_proportional(
    rows: list[tuple[int, int]], fractions: tuple[float, float], seed: int
) -> None:
    client, labels = np.array(rows, np.int32).T
    validation, test = fractions
    split = splits.draw(labels, client, validation, test, seed)
    for i in np.unique(client):
        own, n = split[client == i], (client == i).sum()
        counts = np.bincount(own, minlength=3)
        wanted = [round(validation * n), round(test * n)]
        if sum(wanted) < n:
            assert counts[1:].tolist() == wanted
        else:
            assert counts[splits.TRAIN] == 1
        for label in np.unique(labels[client == i]):
            here = split[(client == i) & (labels == label)]
            assert abs((here != splits.TRAIN).sum() - len(here) * (n - counts[0]) / n) < 1 + 1e-9


def test_a_single_row_is_for_training() -> None:
    assert splits.draw(np.array([0]), np.array([0]), 0.4, 0.5, 0).tolist() == [splits.TRAIN]


def test_every_row_is_as_likely_to_be_held_out() -> None:
    labels = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1], np.int32)
    draws = 2000
    held = sum(
        (splits.draw(labels, np.zeros(10, int), 0.1, 0.2, seed) == splits.TEST).astype(int) for seed in range(draws)
    )
    # Ten two-sided tests at 1e-4 together: a right sampler fails once in a thousand, and the seeds are fixed.
    for count in held:
        assert stats.binomtest(int(count), draws, 0.2).pvalue > 1e-4


def test_rows_of_a_class_are_held_out_by_lot() -> None:
    labels = np.zeros(4, np.int32)
    found = [tuple(splits.draw(labels, labels, 0.0, 0.5, seed)) for seed in range(3000)]
    # Two of four rows are held out: six ways, equally likely.
    counts = np.unique(found, axis=0, return_counts=True)[1]
    assert len(counts) == 6
    assert stats.chisquare(counts).pvalue > 1e-4


def test_a_client_is_drawn_apart_from_the_others() -> None:
    labels = np.tile([0, 1, 2], 20).astype(np.int32)
    alone = splits.draw(labels, np.ones(60, int), 0.1, 0.2, 5)
    company = splits.draw(np.tile(labels, 2), np.repeat([1, 0], 60), 0.1, 0.2, 5)
    np.testing.assert_array_equal(company[:60], alone)
    assert (company[60:] != alone).any()


@pytest.mark.parametrize(
    ("validation", "test", "name"), [(1.0, 0.0, "validation"), (-0.1, 0.0, "validation"), (0.0, "x", "test")]
)
def test_fractions_are_checked(validation: float, test: float, name: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{name}: received"):
        splits.check_fractions(validation, test)


def test_fractions_leave_something_to_train_on() -> None:
    with pytest.raises(InvalidInput, match=r"validation \+ test: received 1.0"):
        splits.check_fractions(0.5, 0.5)

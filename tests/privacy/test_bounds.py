"""Bounds from noisy histograms: what they find, what they cost, and how far one row moves them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedhedge as fh
from fedhedge.privacy import EstimatedBounds, gaussian_mu, histogram_sensitivity
from fedhedge.privacy.bounds import crowded_ends, held_range, histograms

BUDGET = fh.Privacy(3.0, 1e-6)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(2, 9))
@settings(max_examples=50)
def test_one_replaced_row_moves_the_histograms_no_further(seed, features, bins):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6, features)) * 10.0 ** rng.uniform(-2, 3)
    other = X.copy()
    other[0] = rng.normal(size=features) * 10.0 ** rng.uniform(-2, 3)
    low, high = -np.ones(features), np.ones(features)
    first, second = (histograms(table, low, high, bins) for table in (X, other))
    assert np.linalg.norm(first - second) <= histogram_sensitivity(features) + 1e-12
    assert (first.sum(axis=1) == 6).all()


def test_the_sensitivity_is_attained():
    low, high, X = np.zeros(3), np.ones(3), np.full((2, 3), 0.1)
    other = np.array([[0.9] * 3, [0.1] * 3])
    apart = np.linalg.norm(histograms(X, low, high, 4) - histograms(other, low, high, 4))
    assert apart == pytest.approx(histogram_sensitivity(3))


def test_histograms_are_numpy_s():
    X = np.random.default_rng(0).uniform(-1, 2, size=(500, 2))
    found = histograms(X, np.full(2, -1.0), np.full(2, 2.0), 7)
    for feature in range(2):
        expected, _ = np.histogram(X[:, feature], bins=7, range=(-1, 2))
        np.testing.assert_array_equal(found[feature], expected)


def test_mu_adds_up_to_the_budget():
    asked = EstimatedBounds(outer=(0, 1), share=0.3)
    left = asked.remaining(BUDGET)
    total = math.hypot(asked.mu(BUDGET), gaussian_mu(left.epsilon, left.delta))
    assert total == pytest.approx(gaussian_mu(BUDGET.epsilon, BUDGET.delta))


def test_held_bins():
    counts = np.array([[0.0, 3.9, 4.1, 0.0, 50.0, 1.0], [1.0, -4.0, 2.0, 0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(held_range(counts, 1.0), [[2, 5], [0, 6]])


def table(rows, seed=0):
    """Three sites; features in [20, 30] and [0.5, 0.6], and a label that follows from them."""
    rng = np.random.default_rng(seed)
    unit = rng.uniform(size=(rows, 2))
    labels = np.where(unit[:, 0] > unit[:, 1], "high", "low")
    return np.array([20.0, 0.5]) + unit * [10.0, 0.1], labels, rng.integers(0, 3, rows)


def fitted(rows=3000, outer=((0.0, 64.0), (0.0, 1.0)), **changes):
    X, y, sites = table(rows)
    settings = {"method": "dp-dro", "privacy": BUDGET, "rounds": 20, "random_state": 0, "classes": ["high", "low"]}
    return fh.FederatedDROClassifier(**settings | {"feature_bounds": EstimatedBounds(outer)} | changes).fit(X, y, sites)


def test_the_classifier_finds_the_ranges_within_a_bin_and_learns_in_them():
    model = fitted()
    # Bins are 2 and 1/32 wide.
    assert (np.abs(model.bounds_.low - [20.0, 0.5]) < [2.0, 1 / 32]).all()
    assert (np.abs(model.bounds_.high - [30.0, 0.6]) < [2.0, 1 / 32]).all()
    X, y, _ = table(2000, seed=1)
    assert model.score(X, y) > 0.8
    said = next(iter(model.privacy_.values()))
    assert said.bounds == "estimated"
    assert said.epsilon == pytest.approx(BUDGET.epsilon, rel=1e-6)
    assert said.once[0].mu == pytest.approx(math.sqrt(0.2) * gaussian_mu(BUDGET.epsilon, BUDGET.delta))
    assert not any("bounds" in line for line in said.not_covered)


def test_the_folder_brings_it_back(tmp_path):
    model = fitted(rows=600, rounds=3)
    model.save(tmp_path / "model")
    back = fh.FederatedDROClassifier.load(tmp_path / "model")
    assert back.privacy_ == model.privacy_
    assert back.feature_bounds == EstimatedBounds([[0.0, 64.0], [0.0, 1.0]])
    assert back.bounds_.releases == model.bounds_.releases
    np.testing.assert_array_equal(back.bounds_.low, model.bounds_.low)


def test_few_rows_are_said_to_drown_in_the_noise():
    with pytest.warns(UserWarning, match=r"outer range stays for 2 of 2 features \(0, 1\).*more rows, a larger share"):
        model = fitted(rows=30, rounds=2)
    np.testing.assert_array_equal(model.bounds_.high, [64.0, 1.0])


@pytest.mark.filterwarnings("ignore:the end bins")
def test_a_feature_in_one_bin_is_said_to_lose_its_resolution():
    with pytest.warns(UserWarning, match=r"one bin holds .* 1 of 2 features \(0\).*narrower outer range or more bins"):
        model = fitted(outer=((0.0, 1024.0), (0.0, 1.0)), rounds=2)
    np.testing.assert_allclose([model.bounds_.low[0], model.bounds_.high[0]], [0.0, 32.0])


def test_values_beyond_the_outer_range_show_in_its_end_bins():
    with pytest.warns(UserWarning, match=r"end bins .* crowded for 1 of 2 features \(0\).*a wider outer range"):
        fitted(outer=((0.0, 22.0), (0.0, 1.0)), rounds=2)


def test_what_is_warned_of_depends_on_the_noisy_counts_alone():
    counts = np.array([[50.0, 1.0, 0.0], [50.0, 24.0, 0.0], [50.0, 20.0, 0.0], [0.0, 0.0, 50.0]])
    # Twice the next bin, and 4 sqrt(5) = 8.94 deviations more.
    assert crowded_ends(counts, 1.0).tolist() == [True, False, True, True]
    assert crowded_ends(counts, 1.2).tolist() == [True, False, False, True]
    assert not crowded_ends(counts[:, :2], 0.1).any()


def test_far_values_are_counted_in_the_end_bins():
    X = np.array([[1.7e308], [-1.7e308], [0.0], [1.0]])
    assert histograms(X, np.array([-1e307]), np.array([1e307]), 4).tolist() == [[1, 0, 2, 1]]


def test_the_statement_tells_what_was_asked_for_and_found():
    model = fitted(rounds=2)
    said = next(iter(model.privacy_.values()))
    assert said.bounds_found[0] == "for 0.2 of the budget's mu^2, in 32 bins of the outer range"
    low, high = model.bounds_.low[0], model.bounds_.high[0]
    assert said.bounds_found[1] == f"0: [{low:g}, {high:g}] within [0, 64]"
    assert said.bounds_found[1] in str(said)
    assert said.as_dict()["bounds_found"] == list(said.bounds_found)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: EstimatedBounds("data"), "outer: received 'data'"),
        (lambda: EstimatedBounds((0, 1), share=1.0), r"share: received 1\.0"),
        (lambda: EstimatedBounds((0, 1), bins=1), "bins: received 1"),
        (lambda: fitted(privacy=fh.Privacy(0.5, 1e-6, "round")), r"privacy\.per: received 'round'; allowed: \"total\""),
        (lambda: fitted(outer=(1.0, 0.0)), r"outer: received \(1\.0, 0\.0\)"),
        (lambda: EstimatedBounds(None), "outer: received None"),
        (lambda: EstimatedBounds(5.0), r"outer: received 5\.0"),
        (lambda: EstimatedBounds([(0, 1), (0, math.inf)]), r"outer\[1\]: received \(0, inf\)"),
        (lambda: EstimatedBounds({"flow": (0, 1, 2)}), r"outer\.flow: received \(0, 1, 2\)"),
        (lambda: EstimatedBounds((-1e308, 1e308)), "outer: .*divide into 32 bins"),
        (lambda: EstimatedBounds((1e16, 1e16 + 2)), "outer: .*divide into 32 bins"),
        (lambda: EstimatedBounds((0, 1), bins=100_001), "bins: received 100001"),
        (lambda: fitted(outer=[(0, 1)] * 3), r"feature_bounds\.outer: .*there are 2 features"),
        (lambda: fitted(outer={"flow": (0, 1)}), r"feature_bounds\.outer: .*X has no column names"),
        (lambda: EstimatedBounds((0, 1), share=1 - 1e-16).remaining(BUDGET), r"share: received 0\.99"),
        (lambda: fitted(feature_bounds=EstimatedBounds((0, 1), share=1 - 1e-16)), r"feature_bounds\.share: received"),
        (lambda: fitted(method="dro", privacy=None), "no budget to estimate them with"),
    ],
)
def test_refuses(made, message):
    with pytest.raises(fh.InvalidInput, match=message):
        made()

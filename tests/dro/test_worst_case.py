"""Worst-case risk and distribution: the dual by CVXPY, the primal by search and by optimal transport."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from dro import cvxpy_reference
from dro.tables import table
from fedhedge import InvalidInput
from fedhedge.dro import NORMS, crammer_singer_loss, phi, worst_case_distribution, worst_case_risk

ORDER = {"l1": 1, "l2": 2, "linf": np.inf}
COSTS = (0.0, 0.1, 0.7, 5.0, math.inf)


def drawn(seed):
    """A model and a table whose labels take all classes, so that infinite label costs are exact too."""
    rng = np.random.default_rng(seed)
    classes = int(rng.integers(2, 5))
    X, y = table(seed, rows=int(rng.integers(classes, 9)), features=3, classes=classes)
    return rng.choice([0.3, 1.0, 4.0]) * rng.normal(size=(classes, 3)), X, y


def transport(X, y, other, norm, label_cost):
    """Wasserstein-1 distance between the empirical law of (X, y) and a finite distribution, by linear programming."""
    distance = np.linalg.norm(X[:, None] - other.X[None], ORDER[norm], axis=2)
    flipped = y[:, None] != other.y[None]
    distance = distance + np.where(flipped, label_cost if math.isfinite(label_cost) else 1e6, 0.0)
    rows, atoms = distance.shape
    marginals = np.vstack([np.kron(np.eye(rows), np.ones(atoms)), np.kron(np.ones(rows), np.eye(atoms))])
    masses = np.concatenate([np.full(rows, 1 / rows), other.weights])
    return linprog(distance.ravel(), A_eq=marginals, b_eq=masses).fun


@pytest.mark.parametrize("label_cost", COSTS)
@pytest.mark.parametrize("norm", NORMS)
def test_risk_equals_the_dual_solved_by_cvxpy(norm, label_cost):
    for seed, radius in enumerate((0.0, 0.03, 0.4)):
        coef, X, y = drawn(seed)
        value, lam = worst_case_risk(coef, X, y, radius, label_cost, norm)
        expected = cvxpy_reference.risk(coef, X, y, radius, label_cost, norm)
        assert value == pytest.approx(expected, rel=1e-7)
        assert lam >= phi(coef, norm)


@pytest.mark.parametrize("label_cost", COSTS)
@pytest.mark.parametrize("norm", NORMS)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), radius=st.sampled_from([0.0, 0.02, 0.3, 2.0]))
def test_distribution_lies_in_the_ball_and_attains_the_risk(norm, label_cost, seed, radius):
    coef, X, y = drawn(seed)
    value, _ = worst_case_risk(coef, X, y, radius, label_cost, norm)
    worst = worst_case_distribution(coef, X, y, radius, label_cost, norm, tolerance=1e-4)
    assert worst.weights.min() > 0
    assert worst.weights.sum() == pytest.approx(1.0, abs=1e-12)
    expected_loss = float(worst.weights @ crammer_singer_loss(coef, worst.X, worst.y))
    assert value - 1e-4 - 1e-9 * value <= expected_loss <= value + 1e-9 * value
    assert transport(X, y, worst, norm, label_cost) <= radius + 1e-7


@pytest.mark.parametrize("norm", NORMS)
def test_a_looser_tolerance_is_used_and_kept(norm):
    coef = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    X, y = np.array([[2.0, -1.0]]), np.array([0])
    value, _ = worst_case_risk(coef, X, y, 0.1, math.inf, norm)
    shortfalls, distances = [], []
    for tolerance in (1e-2, 1e-4):
        worst = worst_case_distribution(coef, X, y, 0.1, math.inf, norm, tolerance)
        shortfalls.append(value - worst.weights @ crammer_singer_loss(coef, worst.X, worst.y))
        distances.append(np.abs(worst.X).max())
    assert shortfalls == pytest.approx([1e-2, 1e-4], rel=1e-6)
    assert distances[1] > 50 * distances[0]


@pytest.mark.parametrize("label_cost", COSTS)
@pytest.mark.parametrize("norm", NORMS)
def test_no_distribution_found_by_search_exceeds_the_risk(norm, label_cost):
    rng = np.random.default_rng(0)
    radius = 0.3
    for seed in range(3):
        coef, X, y = drawn(seed)
        value, _ = worst_case_risk(coef, X, y, radius, label_cost, norm)
        best = 0.0
        for _ in range(400):
            flipped = rng.random(len(y)) < rng.random() if math.isfinite(label_cost) else np.zeros(len(y), dtype=bool)
            labels = np.where(flipped, rng.integers(len(coef), size=len(y)), y)
            move = rng.normal(size=X.shape) * rng.exponential(size=(len(y), 1)) ** 3
            left = radius - (label_cost * (labels != y).mean() if math.isfinite(label_cost) else 0.0)
            if left < 0:
                continue
            move *= left / np.linalg.norm(move, ORDER[norm], axis=1).mean()
            best = max(best, crammer_singer_loss(coef, X + move, labels).mean())
        assert best <= value + 1e-12
        assert best >= crammer_singer_loss(coef, X, y).mean()


@pytest.mark.parametrize("norm", NORMS)
def test_large_label_costs_leave_norm_regularisation(norm):
    coef, X, y = drawn(4)
    cost = 2 * np.linalg.norm(X, ORDER[norm], axis=1).max()
    value, lam = worst_case_risk(coef, X, y, 0.3, cost, norm)
    assert value == pytest.approx(crammer_singer_loss(coef, X, y).mean() + 0.3 * phi(coef, norm), rel=1e-12)
    assert lam == phi(coef, norm)


def test_without_a_radius_the_risk_is_the_mean_loss_or_that_under_free_flips():
    coef, X, y = drawn(5)
    assert worst_case_risk(coef, X, y, 0.0, 0.5, "l2").value == pytest.approx(
        crammer_singer_loss(coef, X, y).mean(), rel=1e-12
    )
    every = [crammer_singer_loss(coef, X, np.full(len(y), k)) for k in range(len(coef))]
    free = worst_case_risk(coef, X, y, 0.0, 0.0, "l2").value
    assert free == pytest.approx(np.max(every, axis=0).mean(), rel=1e-12)


@pytest.mark.parametrize("norm", NORMS)
def test_trusted_labels_are_never_flipped_even_where_the_risk_is_only_a_bound(norm):
    coef = np.array([[0.0, 0.0], [5.0, 0.0], [-5.0, 0.0]])
    X, y = np.zeros((2, 2)), np.array([0, 0])
    value, _ = worst_case_risk(coef, X, y, 0.1, math.inf, norm)
    worst = worst_case_distribution(coef, X, y, 0.1, math.inf, norm)
    assert set(worst.y) == {0}
    # Class 0 differs from the others by 5, these among themselves by 10.
    assert worst.weights @ crammer_singer_loss(coef, worst.X, worst.y) == pytest.approx(1.5)
    assert value == pytest.approx(2.0)


@pytest.mark.parametrize("label_cost", COSTS)
def test_one_row_added_to_all_rows_changes_nothing(label_cost):
    coef, X, y = drawn(6)
    before, after = (worst_case_risk(model, X, y, 0.2, label_cost, "l2").value for model in (coef, coef + 3.0))
    assert after == pytest.approx(before, rel=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"coef": np.zeros((1, 3))}, "classes: received 1"),
        ({"X": np.zeros((0, 3))}, "X: received .0, 3.; allowed: at least one row"),
        ({"X": np.full((2, 3), np.nan)}, r"X\[0, 0\]: received nan; allowed: a finite number"),
        ({"X": np.zeros(3)}, "X: received 'an array of shape .3,.'"),
        ({"y": np.array([0, 5])}, r"y\[1\]: received 5; allowed: a class index from 0 to 1"),
        ({"y": np.array([0.0, 1.0])}, "y: received 'an array of float64'; allowed: whole class indices"),
        ({"y": np.array([0])}, "y: .*one label per row"),
        ({"radius": -0.1}, r"radius: received -0.1; allowed: a number in \[0"),
        ({"label_cost": math.nan}, "label_cost: received nan"),
        ({"norm": "L2"}, "norm: received 'L2'.*did you mean l2"),
    ],
)
def test_bad_input_is_named(change, message):
    good = {"coef": np.zeros((2, 3)), "X": np.zeros((2, 3)), "y": np.array([0, 1])}
    with pytest.raises(InvalidInput, match=message):
        worst_case_risk(**{**good, "radius": 0.1, "label_cost": 1.0, "norm": "l2", **change})

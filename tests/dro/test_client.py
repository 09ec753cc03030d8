"""The exact client solver against CVXPY with Clarabel, and what its certificate claims."""

import math

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from dro import cvxpy_reference
from dro.tables import table
from fedhedge import InvalidInput
from fedhedge.dro import NORMS, bundle, phi, solve_client, worst_case_risk
from fedhedge.dro.reduced_qp import solve_reduced
from fedhedge.experiments.tables_data import problem

COSTS = (0.0, 0.2, 1.0, math.inf)


def check(X, y, radius, label_cost, norm, center, rho, **options):
    """Solve, compare the value with CVXPY's, and check what the solution says of itself."""
    solution = solve_client(X, y, radius, label_cost, norm, center, rho, **options)
    expected = cvxpy_reference.client_optimum(X, y, radius, label_cost, norm, center, rho)
    # Never above the reference; below it by what the reference, stopping at its own tolerance, may leave.
    assert -1e-6 * max(1.0, expected) <= solution.objective - expected <= 5e-8 * max(1.0, expected)
    assert 0 <= solution.gap <= 1e-8 * max(1.0, solution.objective)
    risk = worst_case_risk(solution.coef, X, y, radius, label_cost, norm)
    penalty = rho / 2 * ((solution.coef - center) ** 2).sum()
    assert solution.objective == pytest.approx(risk.value + penalty, rel=1e-12)
    assert solution.lam >= phi(solution.coef, norm)
    return solution


@pytest.mark.parametrize("label_cost", COSTS)
@pytest.mark.parametrize("norm", NORMS)
def test_value_equals_cvxpy(norm, label_cost):
    rng = np.random.default_rng(0)
    for seed, (radius, rho) in enumerate([(0.05, 0.1), (0.2, 0.02), (0.0, 0.5)]):
        X, y = table(seed)
        solution = check(X, y, radius, label_cost, norm, rng.normal(size=(3, 4)), rho)
        assert solution.kkt <= 1e-8


@pytest.mark.parametrize("label_cost", COSTS)
@pytest.mark.parametrize("norm", NORMS)
def test_value_without_a_proximal_term_equals_cvxpy(norm, label_cost):
    for seed, radius in enumerate((0.02, 0.2, 0.0)):
        X, y = table(20 + seed, rows=24)
        check(X, y, radius, label_cost, norm, np.zeros((3, 4)), 0.0)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_value_equals_cvxpy_on_degenerate_tables(seed):
    rng = np.random.default_rng(seed)
    rows, features, classes = int(rng.choice([1, 2, 7, 20])), int(rng.integers(1, 4)), int(rng.integers(2, 5))
    X = rng.normal(size=(rows, features))
    kind = rng.choice(["whole numbers", "duplicates", "zeros"])
    if kind == "whole numbers":
        X = rng.integers(-1, 2, size=X.shape).astype(float)
    elif kind == "duplicates":
        X = X[rng.integers(max(1, rows // 3), size=rows)]
    else:
        X *= 0
    y = np.full(rows, rng.integers(classes)) if rng.random() < 0.3 else rng.integers(classes, size=rows)
    radius, label_cost = float(rng.choice([0.0, 0.01, 0.1, 1.0])), float(rng.choice([0.0, 0.1, 1.0, np.inf]))
    center = float(rng.choice([0.0, 1.0, 5.0])) * rng.normal(size=(classes, features))
    try:
        check(X, y, radius, label_cost, str(rng.choice(NORMS)), center, float(rng.choice([0.02, 0.1, 1.0])))
    except cvxpy_reference.NotSolvedError:
        reject()


@pytest.mark.parametrize("norm", NORMS)
def test_a_start_nearby_changes_the_time_and_not_the_value(norm):
    rng = np.random.default_rng(3)
    X, y = table(3, rows=120, features=6, classes=4)
    center = np.zeros((4, 6))
    solution = solve_client(X, y, 0.05, 0.5, norm, center, 0.1)
    for _ in range(4):
        center = center + 0.05 * rng.normal(size=center.shape)
        cold = solve_client(X, y, 0.05, 0.5, norm, center, 0.1)
        solution = check(X, y, 0.05, 0.5, norm, center, 0.1, start=solution.coef)
        assert solution.objective == pytest.approx(cold.objective, rel=2e-8)


@pytest.mark.parametrize("spread", [0.2, 0.5])
@pytest.mark.parametrize("norm", NORMS)
def test_from_its_own_solution_a_solve_takes_one_pass(norm, spread):
    """All that binds there is in the first reduced problem, where many rows are at a kink and many pairs bind too."""
    X, y = table(3, rows=300, features=8, classes=8, spread=spread)
    arguments = (X, y, 0.1, 0.5, norm, np.zeros((8, 8)), 0.1)
    solution = solve_client(*arguments)
    assert solve_client(*arguments, start=solution.coef).iterations == 1


@pytest.mark.parametrize("rho", [0.0, 0.1])
@pytest.mark.parametrize("norm", NORMS)
def test_the_gap_of_an_unfinished_solve_still_brackets_the_optimum(norm, rho):
    X, y = table(4, rows=60)
    center = np.ones((3, 4))
    for tolerance in (0.5, 0.05, 1e-3):
        rough = solve_client(X, y, 0.1, 0.5, norm, center, rho, tolerance=tolerance)
        optimum = cvxpy_reference.client_optimum(X, y, 0.1, 0.5, norm, center, rho)
        assert rough.objective - rough.gap - 1e-8 <= optimum <= rough.objective + 1e-8


@pytest.mark.parametrize("norm", NORMS)
def test_no_model_nearby_is_better(norm):
    rng = np.random.default_rng(5)
    X, y = table(5)
    center = rng.normal(size=(3, 4))
    coef, _, objective = solve_client(X, y, 0.1, 0.5, norm, center, 0.1)
    for size in np.geomspace(1e-6, 1.0, 200):
        other = coef + size * rng.normal(size=coef.shape)
        value = worst_case_risk(other, X, y, 0.1, 0.5, norm).value + 0.05 * ((other - center) ** 2).sum()
        assert value >= objective - 1e-8


@pytest.mark.parametrize("label_cost", [0.1, 1.0])
@pytest.mark.parametrize("norm", NORMS)
def test_two_classes_are_the_binary_hinge_problem(norm, label_cost):
    X, y = table(6, classes=2)
    solution = solve_client(X, y, 0.1, label_cost, norm, np.zeros((2, 4)), 0.2)
    # With w = m_0 - m_1 and m_0 = -m_1 at the optimum, ||M||^2 is ||w||^2 / 2.
    expected = cvxpy_reference.binary_hinge_optimum(X, np.where(y == 0, 1.0, -1.0), 0.1, label_cost, norm, 0.2)
    assert solution.objective == pytest.approx(expected, rel=1e-7)
    np.testing.assert_allclose(solution.coef[0], -solution.coef[1], atol=1e-8)


@pytest.mark.parametrize("norm", NORMS)
def test_large_label_costs_are_norm_regularised_learning(norm):
    X, y = table(7, rows=20)
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    cost = 2 * np.linalg.norm(X, order, axis=1).max()
    center = np.random.default_rng(7).normal(size=(3, 4))
    solution = solve_client(X, y, 0.1, cost, norm, center, 0.3)
    expected = cvxpy_reference.regularised_optimum(X, y, 0.1, norm, center, 0.3)
    assert solution.objective == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("norm", NORMS)
def test_a_row_added_to_the_center_is_added_to_the_model(norm):
    X, y = table(8)
    center = np.random.default_rng(8).normal(size=(3, 4))
    plain, moved = (solve_client(X, y, 0.1, 0.5, norm, c, 0.2) for c in (center, center + 2.0))
    assert moved.objective == pytest.approx(plain.objective, abs=2e-8)
    np.testing.assert_allclose(moved.coef, plain.coef + 2.0, atol=1e-3)


@pytest.mark.parametrize("rho", [0.0, 0.1])
@pytest.mark.parametrize("norm", NORMS)
def test_a_large_radius_leaves_rows_equal_to_the_mean_of_the_center(norm, rho):
    X, y = table(9)
    center = np.array([[1.0, 2.0, 3.0, 4.0], [0.0] * 4, [2.0, 1.0, 0.0, 5.0]])
    solution = solve_client(X, y, 50.0, 0.5, norm, center, rho)
    expected = np.tile(center.mean(0) if rho else np.zeros(4), (3, 1))
    np.testing.assert_allclose(solution.coef, expected, atol=1e-12)
    assert solution.lam == 0.0


def test_separable_rows_without_radius_or_proximal_term_cost_nothing():
    X, y = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]), np.array([0, 0, 1])
    solution = solve_client(X, y, 0.0, 1.0, "l2")
    assert solution.objective <= 1e-8


@pytest.mark.parametrize(
    ("rows", "features", "classes", "radius"),
    [
        (200, 6, 20, 0.002),
        (60, 200, 3, 0.05),
        pytest.param(20_000, 13, 4, 0.05, marks=pytest.mark.slow),
        pytest.param(400, 200, 20, 0.002, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("norm", NORMS)
def test_larger_problems_are_certified(norm, rows, features, classes, radius):
    X, y = table(11, rows, features, classes)
    solution = solve_client(X, y, radius, 0.5, norm, np.zeros((classes, features)), 0.1)
    assert solution.gap <= 1e-8


@pytest.mark.parametrize(("seed", "fold"), [(4, 2), (5, 1)])
def test_models_of_a_hundred_times_the_step_s_scale_are_reached(seed, fold):
    """Rows that a model of norm 100 separates, and next to no radius: the flattest problems of the real tables."""
    X, y = problem("dermatology", seed, folds=3).folds[fold].clients.rows("train")
    solution = solve_client(X, y, 0.001, 0.5, "l1")
    assert solution.gap <= 1e-8
    assert phi(solution.coef, "l1") > 10


def test_defaults_take_the_classes_from_the_labels():
    X, y = table(12)
    assert solve_client(X, y, 0.1, 0.5, "l2").coef.shape == (3, 4)
    assert solve_client(X, 0 * y, 0.1, 0.5, "l2").coef.shape == (2, 4)
    assert solve_client(X, y, 0.1, 0.5, "l2", classes=5).coef.shape == (5, 4)


def test_an_unfinished_solve_warns_and_keeps_an_honest_gap(monkeypatch):
    X, y = table(13, rows=60)
    start = 100.0 * np.random.default_rng(14).normal(size=(3, 4))
    monkeypatch.setattr(bundle, "_PASSES", 1)
    center = np.random.default_rng(13).normal(size=(3, 4))
    with pytest.warns(RuntimeWarning, match="stopped at a gap of"):
        solution = solve_client(X, y, 0.1, 0.5, "linf", center, 0.1, start=start)
    optimum = cvxpy_reference.client_optimum(X, y, 0.1, 0.5, "linf", center, 0.1)
    assert solution.gap > 1e-3
    assert solution.objective - solution.gap <= optimum <= solution.objective


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rho": -1.0}, "rho: received -1.0"),
        ({"tolerance": 0.0}, "tolerance: received 0.0"),
        ({"center": np.zeros((3, 2))}, "center: received 'an array of shape .3, 2.'; allowed: .*3, 4"),
        ({"center": np.full((3, 4), np.inf)}, r"center\[0, 0\]: received inf"),
        ({"center": np.zeros((3, 4)), "classes": 4}, "classes: received 4; allowed: the number of rows of center, 3"),
        ({"classes": 2}, r"y\[2\]: received 2"),
        ({"norm": "max"}, "norm: received 'max'"),
    ],
)
def test_bad_input_is_named(change, message):
    X, y = table(14)
    arguments = {"radius": 0.1, "label_cost": 0.5, "norm": "l2", **change}
    with pytest.raises(InvalidInput, match=message):
        solve_client(X, y, **arguments)


@pytest.mark.parametrize("norm", NORMS)
def test_a_large_table_takes_small_programmes(norm, monkeypatch):
    """Far from the optimum nearly all rows are violated; no quadratic programme may hold them all."""
    sizes = []

    def watched(problem, center, rho, working_set):
        sizes.append(len(working_set.extra.row))
        return solve_reduced(problem, center, rho, working_set)

    monkeypatch.setattr(bundle, "solve_reduced", watched)
    X, y = table(16, rows=4000, features=8, classes=4)
    start = np.random.default_rng(16).normal(size=(4, 8))
    solution = solve_client(X, y, 0.01, 0.5, norm, np.zeros((4, 8)), 0.1, start=start)
    assert solution.gap <= 1e-8 * max(1.0, solution.objective)
    assert max(sizes) < 2000


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("rho", [0.0, 0.1])
def test_any_start_leads_to_the_optimum(norm, rho):
    rng = np.random.default_rng(15)
    X, y = table(15, rows=60)
    for start in (np.zeros((3, 4)), 100.0 * rng.normal(size=(3, 4)), np.ones((3, 4))):
        check(X, y, 0.1, 0.5, norm, rng.normal(size=(3, 4)), rho, start=start)


@pytest.mark.parametrize("size", [1e6, 1e32, 1e308])
def test_a_start_far_away_leads_to_the_optimum_where_it_may_be_anywhere(size):
    """Without a proximal term nothing pulls back from such a start."""
    X, y = np.array([[1.0, 0.0], [1.0, 2.0]]), np.array([1, 0])
    far = size * np.array([[0.3, -0.2], [-0.1, -0.3]])
    cold, found = (solve_client(X, y, 0.1, 0.5, "l1", classes=2, start=start) for start in (None, far))
    assert cold.objective == pytest.approx(0.4, abs=1e-7)
    assert found.objective == pytest.approx(0.4, abs=1e-7)


def test_a_start_of_another_shape_is_refused():
    X, y = table(15)
    with pytest.raises(InvalidInput, match=r"start: received 'an array of shape .2, 4.'"):
        solve_client(X, y, 0.2, 0.5, "l2", rho=0.1, start=np.zeros((2, 4)))

"""Mean-CVaR over all mini-batches: the optimum against other solvers, its dual weights against what theory says."""

import numpy as np
import pytest
from scipy.optimize import minimize

from fedhedge.experiments.absolute_loss import CLIENTS, LAW, losses, optimum, risk
from fedhedge.experiments.federage_programme import batch_mass, batch_risk, batches, solve

WEIGHTS = tuple(LAW.weights())
SIZES = (1, 2, 4)
TAILS = ((0.05, 1.0), (0.2, 1.0), (0.7, 1.0), (0.2, 0.8), (0.1, 0.25))

cases = pytest.mark.parametrize(("size", "alpha", "gamma"), [(b, *tail) for b in SIZES for tail in TAILS])


@cases
def test_weights_sum_to_one_and_respect_their_bounds(size, alpha, gamma):
    """(1 - gamma) p_i / N_i^b + gamma q with 0 <= q <= p_i / (N_i^b alpha)."""
    weight, mass = solve(WEIGHTS, alpha, gamma, size).batch, batch_mass(WEIGHTS, size)
    assert weight.sum() == pytest.approx(1.0)
    assert (weight >= (1 - gamma) * mass - 1e-9).all()
    assert (weight <= (1 - gamma + gamma / alpha) * mass + 1e-9).all()


@cases
def test_weights_and_minimiser_are_a_saddle_point(size, alpha, gamma):
    """Strong duality: sum_j v_j f_j is the risk at w, and nowhere below it."""
    best = solve(WEIGHTS, alpha, gamma, size)
    assert best.batch @ batches(size) @ losses(best.w) == pytest.approx(best.value, abs=1e-9)
    rng = np.random.default_rng(0)
    for scale in (0.01, 0.1, 1.0, 10.0):
        for _ in range(100):
            w = best.w + scale * rng.normal(size=2)
            assert best.batch @ batches(size) @ losses(w) >= best.value - 1e-9


@cases
def test_value_is_the_smallest_risk(size, alpha, gamma):
    """Against a simplex search of the enumerated risk, which knows nothing of linear programmes."""
    best = solve(WEIGHTS, alpha, gamma, size)
    assert batch_risk(best.w, WEIGHTS, alpha, gamma, size) == pytest.approx(best.value, abs=1e-9)
    starts = [best.w + shift for shift in ((0.3, -0.2), (-0.4, 0.5))]
    for start in starts:
        found = minimize(batch_risk, start, (WEIGHTS, alpha, gamma, size), method="Nelder-Mead", tol=1e-10)
        assert found.fun >= best.value - 1e-9
    assert min(
        minimize(batch_risk, start, (WEIGHTS, alpha, gamma, size), method="Nelder-Mead", tol=1e-10).fun
        for start in starts
    ) == pytest.approx(best.value, abs=2e-3)


@pytest.mark.parametrize(("alpha", "gamma"), TAILS)
def test_single_rows_agree_with_the_programme_over_rows(alpha, gamma):
    other = optimum(WEIGHTS, (alpha,), (gamma,))
    assert solve(WEIGHTS, alpha, gamma).value == pytest.approx(risk(other, WEIGHTS, (alpha,), (gamma,)), abs=1e-9)


@pytest.mark.parametrize("size", SIZES)
def test_without_a_tail_weights_are_those_of_availability(size):
    """alpha = 1 and gamma = 0 are the mean: p_i for every b, and one optimum for all b."""
    for alpha, gamma in ((1.0, 1.0), (1.0, 0.5), (0.3, 0.0)):
        best = solve(WEIGHTS, alpha, gamma, size)
        np.testing.assert_allclose(best.client, WEIGHTS, atol=1e-9)
        assert best.value == pytest.approx(solve(WEIGHTS, 1.0, 1.0).value)


def test_the_size_of_the_mini_batch_changes_the_optimum():
    found = [solve(WEIGHTS, 0.2, 0.8, size) for size in SIZES]
    # Averages over more rows have a smaller tail.
    assert found[0].value > found[1].value > found[2].value
    for size, best in zip(SIZES[1:], found[1:], strict=True):
        assert batch_risk(found[0].w, WEIGHTS, 0.2, 0.8, size) > best.value + 1e-3


def test_every_mini_batch_is_there_once():
    for size, count in zip(SIZES, (4, 6, 1), strict=True):
        table = batches(size)
        assert table.shape == (CLIENTS * count, CLIENTS * 4)
        assert len(np.unique(table, axis=0)) == len(table)
        np.testing.assert_allclose(table.sum(axis=1), 1.0)
        np.testing.assert_allclose(batch_mass(WEIGHTS, size) @ table, np.repeat(WEIGHTS, 4) / 4)

"""Agnostic FL on scalar clients: the algorithm in NumPy, and the saddle point by a conic solver."""

import numpy as np
import pytest

import fedhedge as fh
from parabolas import A, B, finished, losses, nearest_on_simplex, worst_mixture

EVERYONE = fh.availability.Everyone()
STEP, DUAL = 0.02, 0.02


def algorithm(step=STEP, dual_step=DUAL):
    return fh.algorithms.AgnosticFL(fh.algorithms.FedAvg(step=step), dual_step=dual_step)


def test_is_simultaneous_descent_and_projected_ascent():
    x, weights = 0.0, np.full(3, 1 / 3)
    for _ in range(40):
        gradient = weights @ (A[:3] * (x - B[:3]))
        x, weights = x - 0.05 * gradient, nearest_on_simplex(weights + 0.3 * losses(x, 3))
    simulation = finished(algorithm(0.05, 0.3), EVERYONE, rounds=40, count=3, steps=1)
    assert float(simulation.result().params) == pytest.approx(x, abs=1e-5)
    np.testing.assert_allclose(simulation.state.server.own, weights, atol=1e-5)
    assert weights.min() == 0.0


@pytest.mark.parametrize("count", [2, 3])
def test_averaged_iterate_is_the_saddle_point(count):
    x, weights = worst_mixture(count)
    run = finished(algorithm(), EVERYONE, rounds=10_000, count=count, steps=1).result()
    assert float(run.average_params) == pytest.approx(x, abs=3e-3)
    assert abs(A[:count] @ B[:count] / A[:count].sum() - x) > 0.05
    gap = losses(float(run.average_params), count).max() - losses(x, count).max()
    assert 0 <= gap + 1e-6 < 5e-3
    np.testing.assert_allclose(weights.sum(), 1.0, atol=1e-4)


def test_partial_participation_moves_lambda_by_n_over_s():
    law = fh.availability.Subsets({(0, 2): 1.0}, clients=3)
    simulation = finished(algorithm(), law, rounds=1, count=3, steps=1)
    v = 3 / 2 * losses(0.0, 3) * np.array([1, 0, 1])
    np.testing.assert_allclose(simulation.state.server.own, nearest_on_simplex(1 / 3 + DUAL * v), atol=1e-6)
    # Equal lambda over the two that came.
    assert float(simulation.result().params) == pytest.approx(-STEP * np.mean((A * (0 - B))[[0, 2]]), abs=1e-6)

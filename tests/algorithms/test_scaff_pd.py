"""Scaff-PD: the algorithm in NumPy, and the saddle point by a conic solver, local steps and penalties included."""

import numpy as np
import pytest

import fedhedge as fh
from parabolas import A, B, finished, losses, nearest_on_simplex, worst_mixture

EVERYONE = fh.availability.Everyone()


def test_is_the_algorithm_with_everyone():
    """Extrapolated dual step with a chi-square penalty, corrected local steps, lambda-weighted primal step."""
    step, server_step, sigma, theta, rho, steps = 0.02, 0.8, 0.2, 0.9, 0.3, 3
    x, weights, before = 0.0, np.full(3, 1 / 3), losses(0.0, 3)
    for _ in range(30):
        f, g = losses(x, 3), A[:3] * (x - B[:3])
        s, before = (1 + theta) * f - theta * before, f
        # argmax of <s, l> - rho N/2 |l - 1/N|^2 - |l - weights|^2/(2 sigma): a projection after completing the square.
        weights = nearest_on_simplex((s + rho + weights / sigma) / (3 * rho + 1 / sigma))
        y = np.full(3, x)
        for _ in range(steps):
            y = y - step * (A[:3] * (y - B[:3]) - g + weights @ g)
        x = x + server_step * weights @ (y - x)
    algorithm = fh.algorithms.ScaffPD(
        step=step, server_step=server_step, dual_step=sigma, extrapolation=theta, penalty=rho
    )
    simulation = finished(algorithm, EVERYONE, rounds=30, count=3, steps=steps)
    assert float(simulation.result().params) == pytest.approx(x, abs=1e-5)
    np.testing.assert_allclose(simulation.state.server.weights, weights, atol=1e-5)


@pytest.mark.parametrize(("count", "penalty"), [(3, 0.0), pytest.param(3, 0.5, marks=pytest.mark.slow), (5, 0.2)])
def test_last_iterate_is_the_saddle_point_whatever_the_local_steps(count, penalty):
    x, weights = worst_mixture(count, penalty)
    algorithm = fh.algorithms.ScaffPD(step=0.02, dual_step=0.1, penalty=penalty)
    simulation = finished(algorithm, EVERYONE, rounds=3000, count=count, steps=5)
    assert float(simulation.result().params) == pytest.approx(x, abs=2e-4)
    np.testing.assert_allclose(simulation.state.server.weights, weights, atol=2e-3)
    assert (weights > 0.01).sum() >= 2


def test_messages_are_counted():
    costs = finished(fh.algorithms.ScaffPD(step=0.02), EVERYONE, rounds=1, count=3).costs
    # Down: x, then c alone; up: loss and gradient, then the model's move.
    assert (costs["probe_downlink"], costs["downlink"], costs["probe_uplink"], costs["uplink"]) == (1, 2, 2, 1)


def test_partial_participation_and_mini_batches_stay_finite():
    law = fh.availability.Independent([0.5, 0.4, 0.6])
    run = finished(fh.algorithms.ScaffPD(step=0.02), law, rounds=300, count=3, batch_size=1).result()
    assert B[:3].min() <= float(run.params) <= B[:3].max()

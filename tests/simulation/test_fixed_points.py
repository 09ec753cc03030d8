"""Closed-form fixed points on two quadratic clients, through the public `simulate`."""

import numpy as np
import pytest

import fedhedge as fh
from federations import begin, quadratic
from quadratic_limits import STEP, A, B, limit


def fedavg_fixed_point(steps, weights=(0.5, 0.5)):
    """x* = sum p_i r_i b_i / sum p_i r_i with r_i = 1 - (1 - eta a_i)^K_i: a local step contracts towards b_i."""
    contraction = 1 - (1 - STEP * A) ** np.asarray(steps)
    return np.sum(weights * contraction * B) / np.sum(weights * contraction)


@pytest.mark.parametrize(("steps", "published"), [([10, 10], 0.713123), ([10, 2], 0.634805)])
def test_fedavg(steps, published):
    assert fedavg_fixed_point(steps) == pytest.approx(published, abs=5e-7)
    found = limit(fh.algorithms.FedAvg(step=STEP), fh.availability.Everyone(), steps)
    assert found == pytest.approx(published, abs=2e-6)


@pytest.mark.parametrize("steps", [10, [10, 2]])
def test_scaffold_reaches_the_unweighted_optimum_with_everyone(steps):
    found = limit(fh.algorithms.Scaffold(step=STEP), fh.availability.Everyone(), steps)
    assert found == pytest.approx(0.9, abs=2e-6)


@pytest.mark.parametrize(
    "law",
    [
        fh.availability.FixedSize(size=1),
        fh.availability.FixedSize((9.0, 1.0), size=1),
        fh.availability.Independent([0.3, 0.5]),
        fh.availability.Subsets({(0, 1): 0.2, (0,): 0.7, (1,): 0.1}),
    ],
)
def test_scaffold_reaches_the_unweighted_optimum_whatever_the_availability(law):
    assert limit(fh.algorithms.Scaffold(step=STEP), law, 10, rounds=6000) == pytest.approx(0.9, abs=2e-6)


def test_scaffold_controls_become_the_gradients_at_the_optimum():
    clients, model = quadratic()
    simulation = begin(
        fh.algorithms.Scaffold(step=STEP), model, clients, fh.availability.FixedSize(size=1), rounds=4000,
        local_steps=10, batch_size=None,
    )  # fmt: skip
    simulation.run(None, False, False)
    assert float(simulation.state.server.control) == pytest.approx(0.0, abs=1e-5)
    gradients = A * (0.9 - B)
    np.testing.assert_allclose(np.asarray(simulation.state.clients), gradients, atol=1e-4)
    np.testing.assert_allclose(gradients, [0.9, -0.9])


def test_proximal_term_moves_the_fixed_point_as_its_contraction_says():
    """One step of FedProx from y: y - eta (a (y - b) + mu (y - x)); iterate the affine map exactly in float64."""
    mu, steps = 0.7, 10

    def round_map(x):
        ends = []
        for a, b in zip(A, B, strict=True):
            y = x
            for _ in range(steps):
                y = y - STEP * (a * (y - b) + mu * (y - x))
            ends.append(y)
        return np.mean(ends)

    slope = round_map(1.0) - round_map(0.0)
    fixed = round_map(0.0) / (1 - slope)
    found = limit(fh.algorithms.FedProx(step=STEP, mu=mu), fh.availability.Everyone(), steps)
    assert found == pytest.approx(fixed, abs=2e-6)
    assert abs(fixed - 0.713123) > 0.01


def test_huge_proximal_term_keeps_the_model():
    found = limit(fh.algorithms.FedProx(step=1e-6, mu=1e6), fh.availability.Everyone(), 10, rounds=5)
    assert abs(found) < 1e-4


def test_weighting_by_rows_moves_the_fixed_point():
    """Client 1 holds its row three times: weights (1/4, 3/4), and more rows do not change its own gradient."""
    _, model = quadratic()
    rows = np.array([[1.0, 0.0], [9.0, 1.0], [9.0, 1.0], [9.0, 1.0]])
    clients = fh.data.Clients.from_splits((rows, np.zeros(4), [0, 1, 1, 1]))
    found = {
        weighting: float(
            fh.simulate(
                fh.algorithms.FedAvg(step=STEP), model, clients, fh.availability.Everyone(), rounds=2000,
                local_steps=10, batch_size=None, weighting=weighting, evaluate_every=1000, progress=False,
            ).params
        )
        for weighting in ("uniform", "rows")
    }  # fmt: skip
    assert found["uniform"] == pytest.approx(fedavg_fixed_point([10, 10]), abs=2e-6)
    assert found["rows"] == pytest.approx(fedavg_fixed_point([10, 10], (0.25, 0.75)), abs=2e-6)


def test_projection_on_the_ball_after_every_local_step():
    """Client 1 ends each step on the ball's edge, client 0 contracts to 0: x = ((1 - eta)^10 x + radius)/2."""
    found = limit(fh.algorithms.FedAvg(step=STEP, ball=0.25), fh.availability.Everyone(), 10)
    assert found == pytest.approx(0.25 / (2 - 0.95**10), abs=1e-6)

"""DRFA: unbiased draws, a uniform snapshot step, and the saddle point."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

import fedhedge as fh
from fedhedge.algorithms.base import Batches, Cohort
from fedhedge.algorithms.drfa import Down, State
from parabolas import A, B, finished, losses, moved, nearest_on_simplex, parabolas, worst_mixture

DRAWS = 5000


def test_weights_are_multiplicities_with_mean_lambda_among_those_present():
    method, weights = fh.algorithms.DRFA(dual_step=0.0), jnp.array([0.5, 0.25, 0.0, 0.25])
    server = State(0.0, 0.0, weights, jnp.zeros(2, jnp.uint32))
    cohort = Cohort(jnp.array([0, 2, 3, 4]), jnp.array([1.0, 1.0, 1.0, 0.0]) / 3, jnp.zeros(4))
    keys = jax.random.split(jax.random.key(0), DRAWS)
    found = np.asarray(jax.vmap(lambda key: method.weigh(server, jnp.zeros(4), cohort, key)[1])(keys), np.float64)
    np.testing.assert_allclose(found * 3, np.round(found * 3), atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-6)
    expected = np.array([2 / 3, 0.0, 1 / 3, 0.0])
    assert (np.abs(found.mean(axis=0) - expected) <= 4.5 * np.sqrt(2 / 9 / 3 / DRAWS) * (expected > 0)).all()


def test_nobody_trains_when_lambda_is_zero_for_all_present():
    server = State(0.0, 0.0, jnp.array([1.0, 0.0, 0.0]), jnp.zeros(2, jnp.uint32))
    cohort = Cohort(jnp.array([1, 2]), jnp.array([0.5, 0.5]), jnp.zeros(2))
    _, weights = fh.algorithms.DRFA(dual_step=0.0).weigh(server, jnp.zeros(2), cohort, jax.random.key(0))
    assert not np.asarray(weights).any()


def test_snapshot_is_a_uniform_step_common_to_all_clients():
    method, (clients, model) = fh.algorithms.DRFA(step=0.02), parabolas(2)
    x, y = clients.rows("train")
    rows = jnp.broadcast_to(jnp.arange(2)[:, None, None], (2, 4, 1))
    batches = Batches(jnp.asarray(x), jnp.asarray(y), rows, None, jnp.array([4, 4]))

    def ends(key):
        down = Down(jnp.asarray(3.0), jax.random.key_data(key))
        return method.local(model, down, (), batches, None)[0]

    last, snapshots = jax.jit(jax.vmap(ends))(jax.random.split(jax.random.key(1), DRAWS))
    paths = np.array([moved(3.0, np.arange(2), steps=steps) for steps in (1, 2, 3, 4)])
    np.testing.assert_allclose(last, np.broadcast_to(paths[-1], last.shape), atol=1e-5)
    which = np.abs(np.asarray(snapshots)[:, :, None] - paths.T).argmin(axis=2)
    np.testing.assert_allclose(paths[which, np.arange(2)], snapshots, atol=1e-5)
    np.testing.assert_array_equal(which[:, 0], which[:, 1])
    assert chisquare(np.bincount(which[:, 0], minlength=4)).pvalue > 1e-4


def test_lambda_ascends_along_the_losses_of_the_last_snapshot():
    simulation = finished(fh.algorithms.DRFA(step=0.02, dual_step=0.1), fh.availability.Everyone(), rounds=1, count=3)
    np.testing.assert_allclose(
        simulation.state.server.weights, nearest_on_simplex(1 / 3 + 0.1 * losses(0.0, 3)), atol=1e-6
    )
    costs = simulation.costs
    # Down: snapshot, model and the two words of the key; up: a loss, then a model and a snapshot.
    assert (costs["probe_downlink"], costs["downlink"], costs["probe_uplink"], costs["uplink"]) == (1, 4, 1, 2)


@pytest.mark.parametrize("steps", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_averaged_iterate_is_near_the_saddle_point(steps):
    x, _ = worst_mixture(3)
    algorithm = fh.algorithms.DRFA(step=0.005, dual_step=0.005 * steps)
    run = finished(algorithm, fh.availability.Everyone(), rounds=20_000, count=3, steps=steps).result()
    assert float(run.average_params) == pytest.approx(x, abs=0.03)
    assert abs(A[:3] @ B[:3] / A[:3].sum() - x) > 0.1

"""Projection on the simplex and the weighted quantile against brute force, ties included."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedhedge.algorithms.simplex import ascend, project_simplex, weighted_quantile
from parabolas import nearest_on_simplex

# A coarse grid, so that ties are common.
ENTRIES = st.lists(st.integers(-8, 8).map(lambda k: k / 4), min_size=5, max_size=5)
project, quantile = jax.jit(project_simplex), jax.jit(weighted_quantile)


@given(ENTRIES)
def test_projection_is_the_nearest_point(v):
    found = np.asarray(project(np.array(v, np.float32)))
    np.testing.assert_allclose(found, nearest_on_simplex(np.array(v)), atol=1e-6)


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_projection_of_many_entries_meets_the_optimality_conditions(offset):
    """w = max(v - tau, 0) with one tau, w >= 0, sum 1: the conditions that only the projection fulfils."""
    v = (np.random.default_rng(0).normal(size=5000) + offset).astype(np.float32)
    w = np.asarray(project_simplex(v), np.float64)
    assert w.sum() == pytest.approx(1.0, abs=1e-4)
    tau = v[w > 0] - w[w > 0]
    assert np.ptp(tau) < 2e-3 if offset else np.ptp(tau) < 1e-6
    assert (v[w == 0] <= tau.max() + 1e-6).all()


def test_points_of_the_simplex_stay():
    w = np.array([0.5, 0.25, 0.0, 0.25], np.float32)
    np.testing.assert_array_equal(project_simplex(w), w)


@given(ENTRIES, st.lists(st.integers(0, 3), min_size=5, max_size=5).filter(any), st.integers(0, 12))
def test_quantile_is_the_smallest_value_with_enough_weight_below(values, weights, twelfths):
    values, weights, level = np.array(values), np.array(weights), twelfths / 12
    enough = [v for v in values[weights > 0] if weights[values <= v].sum() >= level * weights.sum() - 1e-9]
    found = quantile(values.astype(np.float32), (weights / weights.sum()).astype(np.float32), level)
    assert float(found) == min(enough)


def test_ascent_moves_those_who_came_by_n_over_s():
    weights = jnp.full(4, 0.25)
    clients, here = np.array([1, 3, 4]), np.array([True, True, False])
    found = ascend(weights, clients, here, np.array([0.2, 0.4, 9.0], np.float32), 0.5)
    expected = nearest_on_simplex(weights + 0.5 * (4 / 2) * np.array([0.0, 0.2, 0.0, 0.4]))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_projection_of_far_and_of_endless_entries():
    far = np.array([3e38, -3e38, -3e38, -3e38, -3e38], np.float32)
    np.testing.assert_array_equal(project(far), np.eye(5)[0])
    np.testing.assert_array_equal(project(np.array([0.5, -np.inf, 0.5, -1.0, -3.0], np.float32)), [0.5, 0, 0.5, 0, 0])
    for endless in (np.inf, np.nan):
        assert np.isnan(project(np.array([0.5, endless, 0.5, 0.0, 0.0], np.float32))).all()

"""Dual norms, phi and their subgradients, against brute force."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedhedge import InvalidInput
from fedhedge.dro import NORMS, dual_norm, phi, phi_subgradient, steepest_direction

ORDER = {"l1": 1, "l2": 2, "linf": np.inf}
entries = st.floats(-3, 3, allow_subnormal=False).map(lambda value: round(value, 3))
models = st.tuples(st.integers(2, 4), st.integers(1, 4)).flatmap(lambda shape: arrays(float, shape, elements=entries))


def extreme_points(norm, features):
    """Vertices of the unit ball of a polyhedral norm."""
    if norm == "l1":
        return np.vstack([np.eye(features), -np.eye(features)])
    return np.array(list(itertools.product([-1.0, 1.0], repeat=features)))


@pytest.mark.parametrize("norm", ["l1", "linf"])
@settings(deadline=None)
@given(model=models)
def test_dual_norm_is_the_largest_product_with_a_vertex_of_the_unit_ball(norm, model):
    largest = (model @ extreme_points(norm, model.shape[1]).T).max(1)
    np.testing.assert_allclose(dual_norm(norm, model), largest, atol=1e-12)


@settings(deadline=None)
@given(model=models)
def test_dual_norm_of_l2_is_euclidean(model):
    np.testing.assert_allclose(dual_norm("l2", model), np.linalg.norm(model, axis=1), atol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
@settings(deadline=None)
@given(model=models)
def test_steepest_direction_has_unit_norm_and_attains_the_dual_norm(norm, model):
    direction = steepest_direction(norm, model)
    lengths = np.linalg.norm(direction, ORDER[norm], axis=1)
    np.testing.assert_allclose(lengths, model.any(1) * 1.0, atol=1e-12)
    np.testing.assert_allclose((direction * model).sum(1), dual_norm(norm, model), atol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
@settings(deadline=None)
@given(model=models)
def test_phi_is_the_largest_norm_over_pairs(norm, model):
    dual_order = {"l1": np.inf, "l2": 2, "linf": 1}[norm]
    largest = max(np.linalg.norm(a - b, dual_order) for a in model for b in model)
    assert phi(model, norm) == pytest.approx(largest, abs=1e-12)


@pytest.mark.parametrize("norm", NORMS)
@settings(deadline=None)
@given(data=st.data())
def test_phi_lies_above_its_subgradient(norm, data):
    model = data.draw(models)
    other = data.draw(arrays(float, model.shape, elements=entries))
    slope = phi_subgradient(model, norm)
    assert phi(other, norm) >= phi(model, norm) + (slope * (other - model)).sum() - 1e-9


@pytest.mark.parametrize("norm", NORMS)
def test_phi_subgradient_is_the_gradient_where_phi_is_smooth(norm):
    model = np.random.default_rng(0).normal(size=(4, 5))
    step = 1e-6
    differences = np.zeros(model.shape)
    for entry in np.ndindex(model.shape):
        shift = np.zeros(model.shape)
        shift[entry] = step
        differences[entry] = (phi(model + shift, norm) - phi(model - shift, norm)) / (2 * step)
    np.testing.assert_allclose(phi_subgradient(model, norm), differences, atol=1e-6)


@pytest.mark.parametrize("norm", NORMS)
def test_one_row_added_to_all_rows_changes_nothing(norm):
    rng = np.random.default_rng(1)
    model, row = rng.normal(size=(3, 4)), rng.normal(size=4)
    assert phi(model + row, norm) == pytest.approx(phi(model, norm), rel=1e-12)
    assert np.abs(phi_subgradient(model, norm).sum(0)).max() < 1e-12


@pytest.mark.parametrize("norm", NORMS)
def test_jax_and_numpy_agree_under_compilation(norm):
    rng = np.random.default_rng(2)
    with jax.enable_x64(True):
        compiled = jax.jit(lambda coef: (phi(coef, norm, jnp), phi_subgradient(coef, norm, jnp)))
        for _ in range(20):
            model = rng.normal(size=(3, 4))
            value, slope = compiled(model)
            assert float(value) == pytest.approx(float(phi(model, norm)), rel=1e-12)
            np.testing.assert_allclose(slope, phi_subgradient(model, norm), atol=1e-12)


def test_unknown_norm_is_named_with_the_nearest_known_one():
    with pytest.raises(InvalidInput, match=r"norm: received 'l3'.*l1, l2, linf"):
        dual_norm("l3", np.zeros((1, 2)))

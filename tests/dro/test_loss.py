"""Crammer-Singer loss, its worst case over labels, and subgradients, against brute force."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedhedge.dro import crammer_singer_loss, risk_subgradient, robust_loss

COSTS = (0.0, 0.4, 3.0, math.inf)


def loss(coef, x, label):
    scores = coef @ x
    return max(0.0, 1.0 + max(scores[k] for k in range(len(coef)) if k != label) - scores[label])


def worst_loss(coef, lam, x, label, label_cost):
    others = [loss(coef, x, k) for k in range(len(coef)) if k != label]
    if math.isinf(label_cost):
        return loss(coef, x, label)
    return max(loss(coef, x, label), max(others) - label_cost * lam)


def drawn(seed, classes=None):
    rng = np.random.default_rng(seed)
    classes = classes or int(rng.integers(2, 6))
    rows, features = int(rng.integers(1, 8)), int(rng.integers(1, 5))
    coef = rng.choice([0.3, 1.0, 4.0]) * rng.normal(size=(classes, features))
    return coef, float(rng.exponential()), rng.normal(size=(rows, features)), rng.integers(classes, size=rows)


@settings(deadline=None)
@given(seed=st.integers(0, 10**6))
def test_loss_equals_its_definition(seed):
    coef, _, X, y = drawn(seed)
    expected = [loss(coef, x, label) for x, label in zip(X, y, strict=True)]
    np.testing.assert_allclose(crammer_singer_loss(coef, X, y), expected, atol=1e-12)


@pytest.mark.parametrize("label_cost", COSTS)
@settings(deadline=None)
@given(seed=st.integers(0, 10**6))
def test_robust_loss_equals_its_definition_and_its_piece(label_cost, seed):
    coef, lam, X, y = drawn(seed)
    worst = robust_loss(coef, lam, X, y, label_cost)
    expected = [worst_loss(coef, lam, x, label, label_cost) for x, label in zip(X, y, strict=True)]
    np.testing.assert_allclose(worst.value, expected, atol=1e-12)
    price = np.where(worst.flipped, lam * (label_cost if math.isfinite(label_cost) else 0.0), 0.0)
    piece = 1.0 + ((coef[worst.rival] - coef[worst.label]) * X).sum(1) - price
    np.testing.assert_allclose(np.where(worst.active, piece, 0.0), expected, atol=1e-12)


@pytest.mark.parametrize("label_cost", COSTS)
@settings(deadline=None)
@given(seed=st.integers(0, 10**6))
def test_mean_robust_loss_lies_above_its_subgradient(label_cost, seed):
    coef, lam, X, y = drawn(seed)
    rng = np.random.default_rng(seed)
    other, other_lam = coef + rng.normal(size=coef.shape), float(rng.exponential())
    in_coef, in_lam = risk_subgradient(coef, lam, X, y, label_cost)
    here = robust_loss(coef, lam, X, y, label_cost).value.mean()
    there = robust_loss(other, other_lam, X, y, label_cost).value.mean()
    assert there >= here + (in_coef * (other - coef)).sum() + in_lam * (other_lam - lam) - 1e-9


@pytest.mark.parametrize("label_cost", COSTS)
def test_subgradient_is_the_gradient_where_the_loss_is_smooth(label_cost):
    coef, lam, X, y = drawn(3, classes=4)
    step = 1e-6

    def mean(shift, lam_shift=0.0):
        return robust_loss(coef + shift, lam + lam_shift, X, y, label_cost).value.mean()

    in_coef, in_lam = risk_subgradient(coef, lam, X, y, label_cost)
    for entry in np.ndindex(coef.shape):
        shift = np.zeros(coef.shape)
        shift[entry] = step
        assert in_coef[entry] == pytest.approx((mean(shift) - mean(-shift)) / (2 * step), abs=1e-6)
    assert in_lam == pytest.approx((mean(0.0, step) - mean(0.0, -step)) / (2 * step), abs=1e-6)


def test_a_row_pulls_with_the_root_of_two_times_its_norm():
    coef, lam, X, y = drawn(5, classes=3)
    active = robust_loss(coef, lam, X, y, 0.5).active
    assert active.any()
    for x, label in zip(X[active], y[active], strict=True):
        in_coef, _ = risk_subgradient(coef, lam, x[None], np.array([label]), 0.5)
        assert np.linalg.norm(in_coef) == pytest.approx(math.sqrt(2) * np.linalg.norm(x), rel=1e-12)


def test_rows_of_weight_zero_do_not_count():
    coef, lam, X, y = drawn(7, classes=3)
    padded_X, padded_y = np.vstack([X, np.full_like(X, 9.0)]), np.concatenate([y, 0 * y])
    weights = np.concatenate([np.full(len(y), 1 / len(y)), np.zeros(len(y))])
    expected = risk_subgradient(coef, lam, X, y, 0.5)
    got = risk_subgradient(coef, lam, padded_X, padded_y, 0.5, weights)
    np.testing.assert_allclose(got[0], expected[0], atol=1e-12)
    assert got[1] == pytest.approx(expected[1], abs=1e-12)


@pytest.mark.parametrize("label_cost", COSTS)
def test_one_row_added_to_all_rows_changes_nothing(label_cost):
    coef, lam, X, y = drawn(9, classes=4)
    shifted = coef + np.arange(1.0, 1 + coef.shape[1])
    before, after = (robust_loss(model, lam, X, y, label_cost).value for model in (coef, shifted))
    np.testing.assert_allclose(after, before, atol=1e-12)


@settings(deadline=None)
@given(seed=st.integers(0, 10**6))
def test_two_classes_give_the_hinge_loss_of_the_difference(seed):
    coef, _, X, y = drawn(seed, classes=2)
    hinge = np.maximum(0.0, 1.0 - np.where(y == 0, 1.0, -1.0) * (X @ (coef[0] - coef[1])))
    np.testing.assert_allclose(crammer_singer_loss(coef, X, y), hinge, atol=1e-12)


def test_jax_and_numpy_agree_under_compilation():
    rng = np.random.default_rng(11)
    with jax.enable_x64(True):
        compiled = jax.jit(lambda *inputs: (risk_subgradient(*inputs, xp=jnp), robust_loss(*inputs, xp=jnp).value))
        for label_cost in COSTS * 3:
            inputs = rng.normal(size=(3, 4)), 0.7, rng.normal(size=(6, 4)), rng.integers(3, size=6), label_cost
            (in_coef, in_lam), value = compiled(*inputs)
            expected = risk_subgradient(*inputs)
            np.testing.assert_allclose(in_coef, expected[0], atol=1e-12)
            assert float(in_lam) == pytest.approx(float(expected[1]), abs=1e-12)
            np.testing.assert_allclose(value, robust_loss(*inputs).value, atol=1e-12)

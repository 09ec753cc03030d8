"""The sensitivities against the client's step itself: never exceeded, and reached by the witness."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fedhedge import InvalidInput
from fedhedge.privacy import gradient_sensitivity, lambda_sensitivity, model_sensitivity, witness

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class State:
    """All that a client's step takes besides its rows: released before, hence the same for both tables."""

    coef: FloatArray
    lambda_: float
    consensus: FloatArray
    dual: FloatArray
    tau: float
    kappa: float
    rho: float
    eta: float
    nu: float
    gamma: float = 0.3
    radius: float = 0.05


def row_subgradient(state: State, x: FloatArray, y: int) -> tuple[FloatArray, float]:
    """Subgradients in M and lambda of h = max(l(x, y), max_k l(x, k) - kappa lambda), by trying every piece."""
    scores = state.coef @ x
    best, gradient, slope = -math.inf, np.zeros_like(state.coef), 0.0
    for label in range(len(scores)):
        price = 0.0 if label == y else state.kappa * state.lambda_
        pieces = [(0.0, None)] + [(1 + scores[k] - scores[label], k) for k in range(len(scores)) if k != label]
        for loss, competitor in pieces:
            if loss - price > best:
                best = loss - price
                gradient = np.zeros_like(state.coef)
                if competitor is not None:
                    gradient[competitor] += x
                    gradient[label] -= x
                slope = 0.0 if label == y else -state.kappa
    return gradient, slope


def step(state: State, rows: FloatArray, labels: NDArray[np.int64]) -> tuple[FloatArray, float]:
    """M and lambda of one DP-Fed DRO round before noise, features under l1 (dual linf)."""
    found = [row_subgradient(state, x, int(y)) for x, y in zip(rows, labels, strict=True)]
    spread = state.coef[:, None] - state.coef[None]
    first, second, feature = np.unravel_index(int(np.argmax(spread)), spread.shape)
    phi = float(spread[first, second, feature])
    phi_gradient = np.zeros_like(state.coef)
    phi_gradient[first, feature] += 1
    phi_gradient[second, feature] -= 1
    weight = state.tau + state.gamma * max(0.0, phi - state.lambda_)
    coef_gradient = np.mean([gradient for gradient, _ in found], axis=0) + weight * phi_gradient
    lambda_gradient = state.radius + float(np.mean([slope for _, slope in found])) - weight
    pull = state.coef / state.eta + state.rho * (state.consensus - state.dual) - coef_gradient
    return pull / (1 / state.eta + state.rho), state.lambda_ - state.nu * lambda_gradient


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[State, float, FloatArray, NDArray[np.int64], FloatArray, NDArray[np.int64]]:
    """A state and two tables of rows within the norm bound that differ in one row."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    samples, features, classes = draw(st.integers(1, 6)), draw(st.integers(1, 4)), draw(st.integers(2, 4))
    length = draw(st.sampled_from([0.5, 1.0, 3.0]))
    size = draw(st.sampled_from([0.0, 0.1, 1.0, 5.0]))
    shape = (classes, features)
    state = State(
        coef=size * rng.standard_normal(shape),
        lambda_=draw(st.floats(-0.5, 5)),
        consensus=rng.standard_normal(shape),
        dual=rng.standard_normal(shape),
        tau=rng.uniform(0, 1),
        kappa=draw(st.floats(0, 3)),
        rho=draw(st.floats(0, 2)),
        eta=draw(st.floats(0.01, 2)),
        nu=draw(st.floats(0.001, 1)),
    )
    rows = rng.standard_normal((samples + 1, features))
    rows *= length * rng.choice([1.0, 0.6], samples + 1)[:, None] / np.linalg.norm(rows, axis=1, keepdims=True)
    if draw(st.booleans()):
        rows[-1] = rows[0]
    labels = rng.integers(0, classes, samples + 1)
    other_rows, other_labels = rows[1:], labels[1:]
    # Row 0 of one table is the last of the other: a replacement, the order of rows being immaterial.
    return state, length, rows[:-1], labels[:-1], other_rows, other_labels


@given(case=neighbours())
@settings(max_examples=300)
def test_one_replaced_row_never_moves_a_step_further(case: Any) -> None:
    state, length, rows, labels, other_rows, other_labels = case
    samples = len(rows)
    coef, lambda_ = step(state, rows, labels)
    other_coef, other_lambda = step(state, other_rows, other_labels)
    moved = np.linalg.norm(coef - other_coef)
    assert moved <= model_sensitivity(samples, state.rho, state.eta, length) * (1 + 1e-9) + 1e-12
    assert moved * (state.rho + 1 / state.eta) <= gradient_sensitivity(samples, length) * (1 + 1e-9) + 1e-12
    assert abs(lambda_ - other_lambda) <= lambda_sensitivity(samples, state.kappa, state.nu) * (1 + 1e-9) + 1e-12


@given(
    samples=st.integers(1, 20),
    features=st.integers(2, 6),
    classes=st.integers(2, 6),
    length=st.sampled_from([0.2, 1.0, 4.0]),
    kappa=st.floats(0.1, 3),
    product=st.floats(0.01, 1.99),
    rho=st.floats(0, 3),
    eta=st.floats(0.01, 3),
    nu=st.floats(0.001, 1),
    seed=st.integers(0, 1000),
)
def test_witness_reaches_both_sensitivities_with_one_replacement(
    samples: int,
    features: int,
    classes: int,
    length: float,
    kappa: float,
    product: float,
    rho: float,
    eta: float,
    nu: float,
    seed: int,
) -> None:
    pair = witness(samples, features, classes, kappa, product / kappa, length)
    assert np.linalg.norm(pair.rows, axis=1).max() <= length * (1 + 1e-12)
    assert np.linalg.norm(pair.replacement) <= length * (1 + 1e-12)
    assert np.array_equal(pair.rows[1:], pair.neighbour_rows[1:])
    rng = np.random.default_rng(seed)
    shape = pair.coef.shape
    consensus, dual = rng.standard_normal(shape), rng.standard_normal(shape)
    state = State(pair.coef, pair.lambda_, consensus, dual, 0.2, kappa, rho, eta, nu)
    coef, lambda_ = step(state, pair.rows, pair.labels)
    other_coef, other_lambda = step(state, pair.neighbour_rows, pair.labels)
    assert np.linalg.norm(coef - other_coef) == pytest.approx(model_sensitivity(samples, rho, eta, length), rel=1e-9)
    assert abs(lambda_ - other_lambda) == pytest.approx(lambda_sensitivity(samples, kappa, nu), rel=1e-9)


def test_gradient_sensitivity_is_attained_by_two_labels_of_one_point() -> None:
    x = np.array([0.6, 0.8])
    coef = np.outer([0.3, 0.1, -2.0], x)  # scores 0.3, 0.1, -2: labels 0 and 1 on top, less than 1 apart
    state = State(coef, 10.0, coef, coef, 0.0, 1.0, 0.5, 0.1, 0.1)
    gradients = [row_subgradient(state, x, label)[0] for label in (0, 1)]
    assert np.linalg.norm(gradients[0] - gradients[1]) == pytest.approx(gradient_sensitivity(1))


@given(rho=st.floats(0, 5), eta=st.floats(0.001, 5), samples=st.integers(1, 1000))
def test_noise_on_the_model_is_the_same_noise_on_the_gradient_for_every_rho_and_eta(
    rho: float, eta: float, samples: int
) -> None:
    multiplier = 3.7
    sigma = multiplier * model_sensitivity(samples, rho, eta, 0.7)
    assert sigma * (rho + 1 / eta) == pytest.approx(multiplier * 2 * math.sqrt(2) * 0.7 / samples)


def test_trusted_labels_make_lambda_public() -> None:
    assert lambda_sensitivity(10, math.inf, 0.1) == 0.0
    assert lambda_sensitivity(10, 0.5, 0.1) == pytest.approx(0.005)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gradient_sensitivity(0), "samples: received 0"),
        (lambda: gradient_sensitivity(5, 0.0), "feature_norm: received 0.0"),
        (lambda: model_sensitivity(5, -1.0, 0.1), "rho: received -1.0"),
        (lambda: model_sensitivity(5, 1.0, 0.0), "eta: received 0.0"),
        (lambda: lambda_sensitivity(5, -0.5, 0.1), "kappa: received -0.5"),
        (lambda: witness(5, 3, 2, 1.0, 2.0), r"kappa \* lambda_: received 2.0"),
        (lambda: witness(5, 1, 2, 1.0, 1.0), "features: received 1"),
    ],
)
def test_bad_arguments(call: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        call()

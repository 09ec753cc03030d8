"""Scaling against scikit-learn's scalers and plain arithmetic."""

import json

import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from fedhedge.data.scaling import Scaling


@pytest.fixture
def rows() -> np.ndarray:
    return np.random.default_rng(0).normal([1.0, -50.0, 0.0], [1.0, 20.0, 1e-3], (10_000, 3))


def test_standard_equals_scikit_learn(rows: np.ndarray) -> None:
    np.testing.assert_allclose(Scaling.standard(rows)(rows), StandardScaler().fit_transform(rows), atol=1e-9)


def test_unit_equals_scikit_learn(rows: np.ndarray) -> None:
    np.testing.assert_allclose(Scaling.unit(rows)(rows), MinMaxScaler().fit_transform(rows), atol=1e-12)


@pytest.mark.parametrize("fit", [Scaling.standard, Scaling.unit])
def test_constant_columns_are_left_alone(fit) -> None:  # type: ignore[no-untyped-def]
    rows = np.array([[0.1, 3.0], [0.1, 5.0], [0.1, 10.0]])
    assert (fit(rows)(rows)[:, 0] == 0.1).all()


def test_pixels_are_scaled_by_channel() -> None:
    image = np.array([[[[0, 255]]]], np.uint8)
    scaled = Scaling.pixels((0.5, 0.25), (0.1, 0.5))(image)
    assert scaled.dtype == np.float32
    np.testing.assert_allclose(scaled, [[[[-5.0, 1.5]]]], rtol=1e-6)


def test_after_is_the_composition_and_survives_json(rows: np.ndarray) -> None:
    first = Scaling.from_bounds(-10.0, 30.0)
    second = Scaling.standard(first(rows))
    both = Scaling.from_dict(json.loads(json.dumps(second.after(first).as_dict())))
    np.testing.assert_allclose(both(rows), second(first(rows)), atol=1e-9)


def test_input_is_not_changed(rows: np.ndarray) -> None:
    before = rows.copy()
    Scaling.standard(rows)(rows)
    np.testing.assert_array_equal(rows, before)

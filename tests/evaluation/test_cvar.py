import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from fedhedge.checks import InvalidInput
from fedhedge.evaluation import cvar

VALUES = st.lists(st.floats(-100, 100) | st.sampled_from([0.0, 1.0, 2.0]), min_size=1, max_size=12)
ALPHA = st.floats(0.01, 1.0)


@given(VALUES, ALPHA)
def test_equals_the_variational_form(values, alpha):
    # min over t of t + E(v - t)+/alpha is attained at an atom.
    numbers = np.array(values)
    brute = min(t + np.maximum(numbers - t, 0).mean() / alpha for t in numbers)
    assert cvar(values, alpha) == pytest.approx(brute, abs=1e-9)


@given(VALUES, ALPHA)
def test_equals_the_dual_a_linear_programme_over_weights(values, alpha):
    # max q.v over q in the simplex with q_i <= 1/(n alpha).
    n = len(values)
    solved = linprog(-np.array(values), A_eq=np.ones((1, n)), b_eq=[1], bounds=(0, 1 / (n * alpha)))
    assert cvar(values, alpha) == pytest.approx(-solved.fun, abs=1e-6)


@given(VALUES, ALPHA)
def test_the_lower_tail_is_the_upper_tail_of_the_negative(values, alpha):
    assert cvar(values, alpha, upper=False) == pytest.approx(-cvar(np.negative(values), alpha), abs=1e-12)


def test_fractions_of_an_atom_by_hand():
    assert cvar([1, 2, 3, 4], 0.375) == pytest.approx((4 + 0.5 * 3) / 1.5)
    assert cvar([1, 2, 3, 4], 0.375, upper=False) == pytest.approx((1 + 0.5 * 2) / 1.5)
    assert cvar([1, 2, 3, 4], 0.1) == 4
    assert cvar([1, 2, 3, 4], 1.0) == 2.5


def test_nan_is_left_out():
    assert cvar([1, np.nan, 3], 0.5) == 3
    assert np.isnan(cvar([np.nan], 0.5))


@pytest.mark.parametrize("alpha", [0.0, 1.01, np.nan, True])
def test_a_mass_outside_its_range_is_refused(alpha):
    with pytest.raises(InvalidInput, match="alpha"):
        cvar([1.0], alpha)


def test_an_infinite_value_counts_in_the_tail_alone():
    assert cvar([1.0, 2.0, 3.0, np.inf], 0.25, upper=False) == 1.0
    assert cvar([1.0, 2.0, 3.0, np.inf], 0.25, upper=True) == np.inf

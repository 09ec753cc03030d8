"""Noise for real rows: its law, its grid, its entropy, and what rounding costs.

Entropy takes no seed, so every test of a random outcome is made to fail by chance less than once in ten million runs.
"""

from __future__ import annotations

import inspect
import math
import os
import subprocess
import sys
from fractions import Fraction
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtr

from fedhedge import InvalidInput
from fedhedge.deployment import extra
from fedhedge.deployment.sampler import (
    EntropyNoise,
    distance_to_gaussian,
    gaussian,
    granularity,
    round_to_grid,
    scale_after_rounding,
    sensitivity_after_rounding,
)

FALSE_ALARM = 1e-8
opendp = pytest.mark.skipif(find_spec("opendp") is None, reason="OpenDP (extra `flower`) is not installed")


@opendp
@pytest.mark.parametrize("scale", [1.0, 0.37, 3e-5, 1.9e12])
def test_law_is_the_normal_one(scale: float) -> None:
    draws = gaussian((20_000,), scale) / scale
    assert stats.kstest(draws, "norm").pvalue > FALSE_ALARM
    squares = float(draws @ draws)
    assert FALSE_ALARM < stats.chi2(len(draws)).cdf(squares) < 1 - FALSE_ALARM


@opendp
def test_every_draw_lies_on_the_grid_and_no_coarser_one_holds_them() -> None:
    for scale in (1.0, 0.7, 1e-20, 3e30):
        spacing = granularity(scale)
        steps = gaussian((200,), scale) / spacing
        assert np.all(steps == np.rint(steps))
        assert np.any(steps % 2 != 0)  # all even: one chance in 2^200


@opendp
def test_calls_are_independent() -> None:
    first, second = gaussian((50, 40), 2.0), gaussian((50, 40), 2.0)
    assert stats.pearsonr(first.ravel(), second.ravel()).pvalue > FALSE_ALARM
    # Equal in one place by chance: 3e-10 each, so two of two thousand would be 2e-13.
    assert np.sum(first == second) < 2
    flat = first.ravel()
    assert stats.pearsonr(flat[:-1], flat[1:]).pvalue > FALSE_ALARM


FORK = """
import os, sys
from fedhedge.deployment.sampler import gaussian
gaussian((3,), 1.0)
child = os.fork()
print(gaussian((3,), 1.0).tolist(), flush=True)
if child:
    os.waitpid(child, 0)
"""


@opendp
@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_draws_other_noise() -> None:
    result = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)
    first, second = result.stdout.splitlines()
    assert first != second


@opendp
def test_shapes_and_empty_arrays() -> None:
    assert gaussian((), 1.0).shape == ()
    assert gaussian((3, 0), 1.0).shape == (3, 0)
    assert gaussian((2, 3), 1.0).shape == (2, 3)
    assert gaussian((2,), 1.0).dtype == np.float64
    with pytest.raises(InvalidInput, match=r"shape\[1\]: received -1"):
        gaussian((2, -1), 1.0)


def test_no_seed_can_be_given() -> None:
    assert list(inspect.signature(gaussian).parameters) == ["shape", "scale"]


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 1e-300, 1e300, "1", None])
def test_scales_that_give_no_noise_are_refused(scale: float) -> None:
    with pytest.raises(InvalidInput, match="scale: received"):
        gaussian((2,), scale)


def test_without_opendp_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp", None)
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(extra.MissingExtra, match=r"'opendp'.*fedhedge\[flower\]"):
        gaussian((2,), 1.0)


@opendp
def test_source_of_releases() -> None:
    source = EntropyNoise()
    model, multiplier = source.draw(0, 0, (1.0, 0.0), ((2, 3), ()))
    assert source.secure
    assert model.shape == (2, 3)
    assert multiplier.shape == ()
    assert multiplier == 0.0
    assert np.any(source.draw(0, 0, (1.0,), ((2, 3),))[0] != model)


@given(scale=st.floats(1e-200, 1e200))
def test_spacing_is_a_power_of_two_near_the_billionth_part_of_the_scale(scale: float) -> None:
    spacing = granularity(scale)
    assert math.frexp(spacing)[0] == 0.5
    assert 2.0**30 <= scale / spacing < 2.0**31


@given(
    value=st.floats(-(2.0**20), 2.0**20),
    scale=st.floats(1.0, 1e3),
    steps=st.integers(-(2**40), 2**40),
)
def test_rounding_is_exact_and_commutes_with_the_noise(value: float, scale: float, steps: int) -> None:
    spacing = granularity(scale)
    rounded = float(round_to_grid(np.array(value), spacing))
    exact = math.floor(Fraction(value) / Fraction(spacing) + Fraction(1, 2)) * Fraction(spacing)
    assert Fraction(rounded) == exact
    # The sum with noise is exact too, so that it says nothing of what was rounded away.
    noise = steps * spacing
    assert Fraction(rounded + noise) == exact + Fraction(noise)


def test_sums_of_doubles_leak_without_rounding_and_not_with_it() -> None:
    spacing, values = granularity(1.0), (0.1, 0.2)
    noise = 12345 * spacing
    raw = {(value + noise) % spacing for value in values}
    assert len(raw) == 2  # the digits below the grid tell the values apart, whatever the noise
    assert {float(round_to_grid(np.array(value), spacing) + noise) % spacing for value in values} == {0.0}


def test_rounding_refuses_what_doubles_cannot_hold() -> None:
    spacing = granularity(1.0)
    for value in (2.0**52 * spacing, -(2.0**60), math.inf, math.nan):
        with pytest.raises(InvalidInput, match="value: received"):
            round_to_grid(np.array([0.0, value]), spacing)
    with pytest.raises(InvalidInput, match="a power of two"):
        round_to_grid(np.zeros(2), 0.3)


@given(data=st.data(), dimension=st.integers(1, 6), sensitivity=st.floats(0.0, 3.0))
def test_rounded_neighbours_keep_the_sensitivity(data: st.DataObject, dimension: int, sensitivity: float) -> None:
    spacing = 0.25
    entries = st.lists(st.floats(-5.0, 5.0), min_size=dimension, max_size=dimension)
    first = np.array(data.draw(entries))
    direction = np.array(data.draw(entries))
    length = float(np.linalg.norm(direction))
    second = first + direction * (sensitivity / length if length > 1e-6 else 0.0)
    apart = float(np.linalg.norm(round_to_grid(first, spacing) - round_to_grid(second, spacing)))
    assert apart <= sensitivity_after_rounding(sensitivity, dimension, spacing) * (1 + 1e-12)


def test_the_bound_on_the_sensitivity_is_approached() -> None:
    spacing, tiny = 0.25, 1e-9
    first, second = np.full(16, 0.125 - tiny), np.full(16, 0.125 + tiny)
    apart = float(np.linalg.norm(round_to_grid(first, spacing) - round_to_grid(second, spacing)))
    assert apart == pytest.approx(sensitivity_after_rounding(0.0, 16, spacing))


@given(scale=st.floats(1e-6, 1e6), multiplier=st.floats(0.1, 1e4), dimension=st.integers(1, 10**6))
def test_raised_scale_pays_for_the_rounding(scale: float, multiplier: float, dimension: int) -> None:
    raised = scale_after_rounding(scale, multiplier, dimension)
    after = sensitivity_after_rounding(scale / multiplier, dimension, granularity(raised))
    assert after / raised <= 1.0 / multiplier
    assert scale <= raised <= scale * (1.0 + 1e-14 + 2.0**-29 * multiplier * math.sqrt(dimension))


def test_scale_is_not_raised_without_end() -> None:
    with pytest.raises(InvalidInput, match="the grid is too wide"):
        scale_after_rounding(1.0, 2.0**31, 4)


@pytest.mark.parametrize("ratio", [0.125, 0.1, 0.03, 0.01])
def test_distance_to_the_rounded_gaussian_by_summation(ratio: float) -> None:
    steps = np.arange(-int(40 / ratio), int(40 / ratio) + 1)
    discrete = np.exp(-((steps * ratio) ** 2) / 2)
    discrete /= discrete.sum()
    rounded = ndtr((steps + 0.5) * ratio) - ndtr((steps - 0.5) * ratio)
    distance = 0.5 * float(np.abs(discrete - rounded).sum())
    assert 0.7 * distance_to_gaussian(1, ratio) < distance <= distance_to_gaussian(1, ratio)


def test_distance_of_many_entries_is_far_below_any_delta() -> None:
    assert distance_to_gaussian(10**9) < 3e-11
    assert distance_to_gaussian(10**3) == pytest.approx(1000 * 2.0**-60 / 40)

"""Who is selected when rare clients are preferred."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fedhedge as fh
from fedhedge.algorithms.base import Cohort
from fedhedge.algorithms.wrapper import Wrapped
from parabolas import finished

LAW = fh.availability.Independent([0.9, 0.6, 0.1])
DRAWS = 20_000


def selected(clients, size):
    """How often each slot is selected, over many keys; the last slot is empty."""
    method = fh.algorithms.AvailabilityAware(law=LAW, size=size)
    here = jnp.array(clients) < 3
    cohort = Cohort(jnp.array(clients), here / here.sum(), here / 3.0)
    server = Wrapped((), jnp.asarray(1 / LAW.inclusion_probabilities()))
    keys = jax.random.split(jax.random.key(0), DRAWS)
    weights = jax.vmap(lambda key: method.weigh(server, (), cohort, key)[1])(keys)
    assert (np.sum(np.asarray(weights) > 0, axis=1) == size).all()
    np.testing.assert_allclose(np.sum(weights, axis=1), 1.0, atol=1e-6)
    return np.mean(np.asarray(weights) > 0, axis=0)


def test_one_of_those_who_came_with_probability_by_min_of_ratio_and_one():
    ratio = np.minimum(1 / 3 / np.array([0.9, 0.6, 0.1]), 1.0)
    expected = np.append(ratio / ratio.sum(), 0.0)
    error = np.sqrt(expected * (1 - expected) / DRAWS)
    assert (np.abs(selected([0, 1, 2, 3], 1) - expected) <= 4.5 * error).all()


def test_two_of_three_are_drawn_one_after_the_other():
    ratio = np.minimum(1 / 3 / np.array([0.9, 0.6, 0.1]), 1.0)
    first = ratio / ratio.sum()
    expected = np.append(first, 0.0)
    for i in range(3):
        expected[i] += sum(first[j] * ratio[i] / (ratio.sum() - ratio[j]) for j in range(3) if j != i)
    error = np.sqrt(expected * (1 - expected) / DRAWS)
    assert (np.abs(selected([0, 1, 2, 3], 2) - expected) <= 4.5 * error + 1e-9).all()


@pytest.mark.filterwarnings("ignore:.*never lets")
def test_a_client_that_never_comes_is_reported_and_harmless():
    law = fh.availability.Independent([0.9, 0.6, 0.0])
    simulation = finished(fh.algorithms.AvailabilityAware(law=law, size=1), law, rounds=20, count=3)
    assert "never lets 1 of 3 clients through (2)" in simulation.warned[0]
    assert np.isfinite(float(simulation.result().params))

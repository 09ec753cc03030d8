"""Superquantile and power of choice against plain NumPy, round by round."""

import jax.numpy as jnp
import numpy as np
import pytest

import fedhedge as fh
from fedhedge.algorithms.base import Cohort
from parabolas import STEP, finished, replay

LAW = fh.availability.Independent([0.7, 0.5, 0.6, 0.4, 0.5])
FEDAVG = fh.algorithms.FedAvg(step=STEP)


def compared(algorithm, weigh):
    simulation = finished(algorithm, LAW, rounds=60)
    models, trained = replay(LAW.schedule(0, 0, 60), weigh)
    run = simulation.result()
    np.testing.assert_array_equal(np.stack(np.nonzero(trained)), run.participation.to_numpy().T)
    assert float(run.params) == pytest.approx(models[-1], abs=1e-6)
    assert float(run.average_params) == pytest.approx(models.mean(), abs=1e-6)
    assert run.counts["probes"] == LAW.schedule(0, 0, 60).sum() > run.counts["uploads"]


def tail(losses, who, theta):
    """Clients whose loss is at least the smallest value with mass 1 - theta at or below it."""
    below = [np.mean(losses <= value) for value in losses]
    q = min((value for value, mass in zip(losses, below, strict=True) if mass >= 1 - theta - 1e-9), default=0)
    return losses >= q


def test_superquantile_trains_the_tail():
    compared(fh.algorithms.Superquantile(FEDAVG, theta=0.4), lambda losses, who: tail(losses, who, 0.4))


def test_power_of_choice_trains_the_largest_losses():
    def largest_two(losses, who):
        return np.isin(np.arange(len(who)), np.argsort(-losses, kind="stable")[:2])

    compared(fh.algorithms.PowerOfChoice(FEDAVG, size=2), largest_two)


@pytest.mark.parametrize(
    ("method", "chosen"),
    [
        # A mass of 3/8 takes the larger of two equal losses' whole tie; sizes count in the quantile and the mean.
        (fh.algorithms.Superquantile(theta=0.375), [False, True, True, False]),
        (fh.algorithms.PowerOfChoice(size=1), [False, True, False, False]),
    ],
)
def test_ties(method, chosen):
    """Losses 1, 2, 2 with weights 1/2, 1/4, 1/4; the last slot is empty."""
    cohort = Cohort(jnp.array([0, 4, 5, 9]), jnp.array([0.5, 0.25, 0.25, 0.0]), jnp.zeros(4))
    _, weights = method.weigh(None, jnp.array([1.0, 2.0, 2.0, 0.0]), cohort, None)
    expected = cohort.weights * np.array(chosen)
    np.testing.assert_allclose(weights, expected / expected.sum())

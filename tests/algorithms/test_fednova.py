"""FedNova: fixed points in closed form, and FedAvg where steps are equal."""

import numpy as np
import pytest

import fedhedge as fh
from federations import same
from least_squares import UNEQUAL_STEPS, costs, trained
from quadratic_limits import EVERYONE, STEP, A, B, balance, contraction, limit


@pytest.mark.parametrize(("steps", "published"), [([10, 2], 0.896815), ([10, 10], 0.713123)])
def test_fixed_point_is_that_of_updates_per_step(steps, published):
    assert balance(contraction(steps) / np.array(steps)) == pytest.approx(published, abs=5e-7)
    assert limit(fh.algorithms.FedNova(step=STEP), steps=steps) == pytest.approx(published, abs=2e-6)


def test_proximal_fixed_point():
    """Moves over the accumulated weights of the gradients, which are counted here one local step at a time."""
    mu, steps = 0.7, (10, 2)
    pulls = []
    for a, count in zip(A, steps, strict=True):
        move, weight = 0.0, 0.0
        for _ in range(count):
            # y - x, with b - x as unit: gradient a (y - b) + mu (y - x); earlier gradients fade by 1 - eta mu.
            move += STEP * (a * (1 - move) - mu * move)
            weight = weight * (1 - STEP * mu) + 1
        pulls.append(move / weight)
    expected = balance(np.array(pulls))
    assert limit(fh.algorithms.FedNova(step=STEP, mu=mu), steps=steps) == pytest.approx(expected, abs=2e-6)
    assert abs(expected - 0.896815) > 1e-3


def test_server_step_is_the_mean_number_of_local_steps():
    """One round from x = 0: only client 1 pulls, by (tau_1 + tau_2)/2 times half its move per step."""
    found = limit(fh.algorithms.FedNova(step=STEP), steps=[10, 2], rounds=1)
    assert found == pytest.approx((10 + 2) / 2 * 0.5 * contraction(2)[()][1] / 2 * B[1], rel=1e-5)


@pytest.mark.parametrize("law", [fh.availability.Independent(0.3), EVERYONE], ids=["independent", "everyone"])
def test_equal_steps_are_fedavg_bit_for_bit(law):
    runs = [trained(kind(step=0.1), law) for kind in (fh.algorithms.FedNova, fh.algorithms.FedAvg)]
    assert same(runs[0].state.server, runs[1].state.server)
    assert runs[0].costs["uplink"] == runs[1].costs["uplink"] == 2


def test_the_number_of_steps_is_sent_where_they_differ():
    assert costs(fh.algorithms.FedNova(step=0.1), local_steps=UNEQUAL_STEPS)["uplink"] == 3


@pytest.mark.parametrize(
    ("arguments", "message"), [({"mu": -1.0}, "mu: received"), ({"mu": 3.0, "step": 0.5}, "mu: .*at most 1/step = 2")]
)
def test_refuses(arguments, message):
    with pytest.raises(fh.InvalidInput, match=message):
        fh.algorithms.FedNova(**arguments)

"""q-FedAvg: FedAvg at q = 0, its fixed point, equal losses as q grows."""

import numpy as np
import pytest
from scipy.optimize import brentq

import fedhedge as fh
from federations import same
from least_squares import costs, trained
from quadratic_limits import STEP, A, B, contraction, limit

QFedAvg = fh.algorithms.QFedAvg


def test_no_preference_is_fedavg_bit_for_bit():
    law = fh.availability.Independent(0.3)
    ours, plain = (trained(algorithm, law).state for algorithm in (QFedAvg(step=0.1, q=0.0), fh.algorithms.FedAvg(0.1)))
    assert same(ours.server, plain.server)


def fixed_point(q):
    """sum_i F_i(x)^q r_i (x - b_i) = 0: at rest the weighted moves cancel, whatever the sum of the h_i."""

    def pull(x):
        return np.sum((A / 2 * (x - B) ** 2) ** q * contraction(10) * (x - B))

    return brentq(pull, 1e-6, 1 - 1e-6)


@pytest.mark.parametrize("q", [0.5, 2.0])
def test_fixed_point(q):
    assert limit(QFedAvg(step=STEP, q=q)) == pytest.approx(fixed_point(q), abs=1e-5)


def test_losses_become_equal_as_q_grows():
    """F_1 = F_2 at x = 3/4: x^2 = 9 (x - 1)^2."""
    assert abs(fixed_point(20.0) - 0.75) < 0.005 < abs(fixed_point(1.0) - 0.75)
    assert limit(QFedAvg(step=STEP, q=20.0), rounds=4000) == pytest.approx(fixed_point(20.0), abs=1e-3)


def test_one_round_is_the_update_written_out():
    """At x = 0 the losses are (0, 9/2); D_i = (x - y_i)/eta, h_i as published."""
    q, x = 1.5, 0.0
    loss = A / 2 * (x - B) ** 2 + 1e-10
    D = contraction(10) * (x - B) / STEP
    h = q * loss ** (q - 1) * D**2 + loss**q / STEP
    assert limit(QFedAvg(step=STEP, q=q), rounds=1) == pytest.approx(x - np.sum(loss**q * D) / np.sum(h), rel=1e-5)


def test_the_loss_is_sent_too():
    assert costs(QFedAvg(step=0.1))["uplink"] == 2 + 1


@pytest.mark.parametrize("arguments", [{"q": -1.0}, {"step": 0.0}])
def test_refuses(arguments):
    with pytest.raises(fh.InvalidInput, match=next(iter(arguments))):
        QFedAvg(**arguments)

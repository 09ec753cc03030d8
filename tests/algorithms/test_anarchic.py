"""AFA-CD and AFA-CS: fixed points, staleness step by step, state."""

import numpy as np
import pytest

import fedhedge as fh
from least_squares import costs, trained
from quadratic_limits import EVERYONE, SKEWED, STEP, B, balance, contraction, limit

Anarchic = fh.algorithms.Anarchic
PER_STEP = contraction([10, 2]) / np.array([10, 2])


@pytest.mark.parametrize(
    ("settings", "law", "rounds"),
    [
        ({"server": "cd"}, EVERYONE, 2000),
        ({"server": "cs"}, SKEWED, 2000),
        ({"server": "cs", "stale": True, "server_step": 0.05}, SKEWED, 8000),
        ({"server": "cd", "stale": True}, EVERYONE, 2000),
    ],
    ids=str,
)
def test_fixed_point_is_that_of_mean_gradients(settings, law, rounds):
    """For "cs" whatever the availability; stale models are the present one where nothing moves any more."""
    assert balance(PER_STEP) == pytest.approx(0.896815, abs=5e-7)
    found = limit(Anarchic(step=STEP, **settings), law, [10, 2], rounds)
    assert found == pytest.approx(0.896815, abs=2e-5)


def test_cd_follows_the_weights_of_availability():
    """Cohorts of one or both, equal in the mean to weights (0.7, 0.3); a small step averages over them."""
    law = fh.availability.Subsets({(0, 1): 0.2, (0,): 0.6, (1,): 0.2}, clients=2)
    np.testing.assert_allclose(law.weights(), [0.7, 0.3])
    expected = balance(law.weights() * PER_STEP)
    found = limit(Anarchic(step=STEP, server_step=0.01), law, [10, 2], 20_000)
    assert found == pytest.approx(expected, abs=0.03)
    assert abs(expected - 0.896815) > 0.07


def test_stale_workers_start_from_the_model_of_their_last_visit():
    """Both servers on a fixed order of visits, written out."""
    steps, rounds = np.array([3, 2]), 7
    for server in ("cd", "cs"):
        law = fh.availability.Trace(_visits(rounds))
        stale, fresh = (_written_out(server, steps, _visits(rounds), 0.8, stale) for stale in (True, False))
        found = limit(Anarchic(step=STEP, server=server, stale=True, server_step=0.8), law, steps.tolist(), rounds)
        assert found == pytest.approx(stale, rel=1e-5)
        assert abs(fresh - stale) > 1e-3


def _written_out(server, steps, visits, server_step, stale):
    """The model after these visits; G_i from the closed form of full-gradient steps."""
    x, held, kept = 0.0, np.zeros(2), np.zeros(2)
    for present in visits:
        start = held if stale else np.full(2, x)
        mean = np.where(present, contraction(steps) * (start - B) / steps, 0.0)
        kept = np.where(present, mean, kept)
        held = np.where(present, x, held)
        x = x - server_step * (mean.sum() / present.sum() if server == "cd" else kept.mean())
    return x


def _visits(rounds):
    """Client 0 in every round but the third, client 1 in the second, third, and sixth."""
    visits = np.zeros((rounds, 2), bool)
    visits[:, 0], visits[[1, 2, 5], 1] = True, True
    visits[2, 0] = False
    return visits


def test_cd_at_the_server_step_of_h_is_fedavg():
    ours, plain = (
        trained(algorithm, fh.availability.Independent(0.3)).state
        for algorithm in (Anarchic(step=0.1, server_step=4.0), fh.algorithms.FedAvg(step=0.1))
    )
    np.testing.assert_allclose(ours.server.model, plain.server, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(
    ("settings", "client", "server"),
    [({}, 0, 2), ({"stale": True}, 2, 2), ({"server": "cs"}, 0, 14), ({"server": "cs", "stale": True}, 2, 14)],
)
def test_state(settings, client, server):
    found = costs(Anarchic(step=0.1, **settings))
    assert (found["uplink"], found["downlink"]) == (2, 2)
    assert (found["client_state"], found["server_state"]) == (client, server)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"server": "dc"}, "server: received 'dc'; allowed: cd, cs"), ({"stale": 1}, "stale: received 1")],
)
def test_refuses(arguments, message):
    with pytest.raises(fh.InvalidInput, match=message):
        Anarchic(**arguments)

"""Invariants of SCAFFOLD."""

import jax
import numpy as np
import pytest

import fedhedge as fh
from federations import begin, digits


@pytest.mark.parametrize(
    "law", [fh.availability.presets.sporadic(), fh.availability.Independent(0.1), fh.availability.Everyone()], ids=str
)
def test_server_control_is_the_mean_of_client_controls(law):
    simulation = begin(
        fh.algorithms.Scaffold(step=0.1), fh.models.Linear(), digits(), law, rounds=30, evaluate_every=10, batch_size=8
    )
    simulation.run(None, False, False)
    own = jax.tree.leaves(simulation.state.clients)
    common = jax.tree.leaves(simulation.state.server.control)
    for c_i, c in zip(own, common, strict=True):
        assert np.abs(np.asarray(c)).max() > 0
        np.testing.assert_allclose(np.asarray(c_i, np.float64).mean(axis=0), np.asarray(c), atol=2e-6)


def test_state_of_clients_that_did_not_get_through_stays():
    law = fh.availability.Subsets({(0, 1): 0.5, (1, 2): 0.5}, clients=30)
    simulation = begin(fh.algorithms.Scaffold(step=0.1), fh.models.Linear(), digits(), law, rounds=10, batch_size=8)
    simulation.run(None, False, False)
    for leaf in jax.tree.leaves(simulation.state.clients):
        assert not np.asarray(leaf)[3:].any()
        assert np.asarray(leaf)[:3].any()


def test_uplink_is_twice_that_of_fedavg():
    costs = {
        algorithm.name: begin(algorithm, fh.models.Linear(), digits(), fh.availability.Everyone()).costs
        for algorithm in (fh.algorithms.FedAvg(), fh.algorithms.Scaffold(), fh.algorithms.FedeRage())
    }
    parameters = 64 * 10 + 10
    assert costs["FedAvg"]["uplink"] == parameters
    assert costs["Scaffold"]["uplink"] == 2 * parameters
    assert costs["FedeRage"]["uplink"] == parameters + 1
    assert costs["Scaffold"]["client_state"] == parameters
    assert costs["FedAvg"]["client_state"] == costs["FedeRage"]["client_state"] == 0


@pytest.mark.parametrize("arguments", [{"step": 0.0}, {"server_step": 0.0}, {"step": -1.0}, {"step": "fast"}])
def test_refuses(arguments):
    with pytest.raises(fh.InvalidInput, match=next(iter(arguments))):
        fh.algorithms.Scaffold(**arguments)

"""MIFA and FedVARP against their algorithms written out, and where they settle."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fedhedge as fh
from fedhedge.algorithms import Cohort
from least_squares import costs, trained
from quadratic_limits import EVERYONE, SKEWED, STEP, balance, contraction, limit

METHODS = [fh.algorithms.Mifa, fh.algorithms.FedVarp]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("steps", [10, [10, 2]], ids=str)
def test_fixed_point_is_that_of_fedavg_with_everyone_whatever_the_availability(method, steps):
    """All u_i are y_i - x there, and their plain mean is 0."""
    expected = balance(contraction(steps))
    assert limit(method(step=STEP, server_step=0.3), SKEWED, steps) == pytest.approx(expected, abs=3e-6)
    assert abs(limit(fh.algorithms.FedAvg(step=STEP), SKEWED, steps) - expected) > 0.05


@pytest.mark.parametrize("method", METHODS)
def test_with_everyone_it_is_fedavg(method):
    ours, plain = (trained(kind(step=0.1), EVERYONE).state for kind in (method, fh.algorithms.FedAvg))
    np.testing.assert_allclose(ours.server.model, plain.server, rtol=2e-6, atol=2e-6)


def written_out(kind, uploads, clients, weights, mass, server_step):
    """Server models after each round, every sum over all N clients done afresh in double precision."""
    table, x, found = np.zeros((len(mass), 3)), np.zeros(3), []
    for up, who, w in zip(uploads, clients, weights, strict=True):
        kept = [(s, i) for s, i in enumerate(who) if w[s] > 0]
        if kind is fh.algorithms.FedVarp:
            x = x + server_step * (sum(w[s] * (up[s] - table[i]) for s, i in kept) + mass @ table)
        for s, i in kept:
            table[i] = up[s]
        if kind is fh.algorithms.Mifa:
            x = x + server_step * (mass @ table)
        found.append(x)
    return found, table


@pytest.mark.parametrize("method", METHODS)
def test_running_mean_and_table_are_the_sums_written_out(method):
    """Six clients, cohorts of up to three with empty slots (client 6) and uploads left out (weight 0)."""
    rng = np.random.default_rng(0)
    mass = np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
    clients = np.array([[0, 2, 5], [1, 6, 6], [0, 1, 3], [2, 5, 6], [0, 4, 5]])
    weights = np.array([[0.5, 0.3, 0.2], [1.0, 0, 0], [0.4, 0.0, 0.6], [0.0, 1.0, 0.0], [0.2, 0.2, 0.6]])
    uploads = rng.normal(size=(5, 3, 3)) * (clients < 6)[:, :, None]
    algorithm = method(step=0.1, server_step=0.7)
    server = algorithm.init_server(fh.algorithms.Start(jnp.zeros(3), 6, mass, lambda: 1.0))
    expected, table = written_out(method, uploads, clients, weights, mass, 0.7)
    aggregate = jax.jit(algorithm.aggregate)
    for r in range(5):
        own = np.where(clients[r] < 6, mass[np.minimum(clients[r], 5)], 0.0)
        cohort = Cohort(*(jnp.asarray(leaf) for leaf in (clients[r], weights[r], own)))
        server = aggregate(server, jnp.asarray(uploads[r], jnp.float32), cohort)
        np.testing.assert_allclose(server.model, expected[r], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(server.table, table, rtol=1e-6)
    np.testing.assert_allclose(server.mean, mass @ table, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_a_client_never_seen_counts_as_content(method):
    """Client 0 never comes: u_0 = 0 leaves the other's optimum."""
    law = fh.availability.Subsets({(1,): 1.0}, clients=2)
    assert limit(method(step=STEP, server_step=0.5), law) == pytest.approx(1.0, abs=1e-5)


def test_the_server_holds_the_table_and_clients_hold_nothing():
    found = costs(fh.algorithms.Mifa(step=0.1))
    assert (found["uplink"], found["downlink"]) == (2, 2)
    assert (found["client_state"], found["server_state"]) == (0, (5 + 2) * 2)


@pytest.mark.parametrize("method", METHODS)
def test_refuses(method):
    with pytest.raises(fh.InvalidInput, match=r"server_step: received 0\.0"):
        method(server_step=0.0)

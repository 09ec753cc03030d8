"""Compressed controls: the error bound of rounding, the same limit as SCAFFOLD, and what an upload costs."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fedhedge as fh
from federations import begin, digits
from fedhedge.algorithms.compressed_scaffold import decode, encode
from least_squares import UNEQUAL_STEPS, trained
from quadratic_limits import SKEWED, STEP, limit

LAW = fh.availability.Independent(0.3)


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_rounding_error_is_at_most_half_a_unit(bits):
    rng = np.random.default_rng(0)
    tree = {"a": jnp.asarray(rng.normal(size=(50, 7)) * 10.0 ** rng.integers(-6, 3, (50, 7)), jnp.float32)}
    tree["none"], tree["one"] = jnp.zeros(3), jnp.asarray(-2.5)
    codes, units = encode(tree, bits)
    found = decode(codes, units)
    for name, value in tree.items():
        largest = float(jnp.abs(value).max())
        assert np.abs(np.asarray(found[name]) - np.asarray(value)).max() <= largest / (2**bits - 2) * (1 + 1e-5)
        assert np.abs(np.asarray(codes[name])).max() <= 2 ** (bits - 1) - 1
    assert float(np.abs(found["a"] - tree["a"]).max()) > 0


def test_exact_numbers_give_scaffold():
    ours = trained(fh.algorithms.CompressedScaffold(step=0.1, bits=None), LAW, local_steps=UNEQUAL_STEPS)
    plain = trained(fh.algorithms.Scaffold(step=0.1), LAW, local_steps=UNEQUAL_STEPS)
    for mine, theirs in (
        (ours.state.server.base, plain.state.server.base),
        (ours.state.server.control, plain.state.server.control),
        (ours.state.clients.control, plain.state.clients),
    ):
        for a, b in zip(jax.tree.leaves(mine), jax.tree.leaves(theirs), strict=True):
            np.testing.assert_allclose(a, b, atol=3e-6 * max(1.0, float(jnp.abs(b).max())))


@pytest.mark.parametrize(("bits", "every"), [(2, 3)])
def test_server_control_is_the_mean_of_client_controls(bits, every):
    simulation = trained(fh.algorithms.CompressedScaffold(step=0.1, bits=bits, every=every), LAW)
    clients, server = simulation.state.clients, simulation.state.server
    for c_i, c in zip(jax.tree.leaves(clients.control), jax.tree.leaves(server.control), strict=True):
        assert np.abs(np.asarray(c)).max() > 0
        np.testing.assert_allclose(np.asarray(c_i, np.float64).mean(axis=0), np.asarray(c), atol=2e-6)
    came = simulation.result().participation.client.value_counts()
    assert np.array_equal(np.asarray(clients.visits), [came.get(client, 0) for client in range(5)])


def test_every_nth_visit_changes_the_control():
    """Client 0 alone comes; with every = 3 its control after 3 rounds is the one after its first."""
    law = fh.availability.Subsets({(0,): 1.0}, clients=5)
    algorithm = fh.algorithms.CompressedScaffold(step=0.1, every=3)
    controls = []
    for rounds in (1, 3, 4):
        simulation = trained(algorithm, law, rounds=rounds, evaluate_every=1)
        controls.append(np.asarray(simulation.state.clients.control[0]))
    assert np.abs(controls[0]).max() > 0
    np.testing.assert_array_equal(controls[0], controls[1])
    assert not np.array_equal(controls[1], controls[2])


@pytest.mark.parametrize("settings", [{}, {"bits": 2, "every": 4}])
def test_reaches_the_unweighted_optimum_whatever_the_availability(settings):
    found = limit(fh.algorithms.CompressedScaffold(step=STEP, **settings), SKEWED, 10, rounds=4000)
    assert found == pytest.approx(0.9, abs=2e-6)


def test_four_bits_reach_what_scaffold_reaches_on_many_parameters():
    """Strongly convex least squares in 40 dimensions, full gradients: the optimum is the mean of the centres."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(4, 40)).astype(np.float32)
    clients = fh.data.Clients.from_splits((centers, np.zeros(4), range(4)))
    model = fh.models.Functional(
        init=lambda key: jnp.zeros(40), loss=lambda w, x, y: jnp.sum((w - x) ** 2, axis=1) / 2, convex=True
    )
    law = fh.availability.FixedSize((4.0, 2.0, 1.0, 1.0), size=2)
    run = fh.simulate(
        fh.algorithms.CompressedScaffold(step=0.05), model, clients, law, rounds=1500, local_steps=4, batch_size=None,
        evaluate_every=1500, evaluate_on=(), progress=False,
    )  # fmt: skip
    np.testing.assert_allclose(run.params, centers.mean(axis=0), atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "bits"),
    [({}, 4 * 650 + 2 * 32), ({"bits": None}, 32 * 650), ({"bits": 8, "every": 2}, 8 * 650 + 2 * 32 + 1)],
)
def test_uplink_is_counted_in_scalars_of_32_bits(settings, bits):
    """Softmax regression on digits: 650 parameters in two arrays."""
    algorithm = fh.algorithms.CompressedScaffold(**settings)
    simulation = begin(algorithm, fh.models.Linear(), digits(), fh.availability.Everyone())
    assert simulation.costs["uplink"] == math.ceil(bits / 32)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"bits": 1}, "bits: received 1; allowed: a whole number from 2 to 8"), ({"every": 0}, "every: received 0")],
)
def test_refuses(arguments, message):
    with pytest.raises(fh.InvalidInput, match=message):
        fh.algorithms.CompressedScaffold(**arguments)

"""SCAFFOLD: the one-upload form against the published one, its invariant, its costs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fedhedge as fh
from federations import begin, digits
from fedhedge.algorithms import Batches, Cohort
from fedhedge.algorithms.first_order import Stepped
from least_squares import UNEQUAL_STEPS, trained
from textbook_scaffold import ExactScaffold, TextbookScaffold

RARE = fh.availability.FixedSize((4.0, 4.0, 2.0, 1.0, 0.5), size=2)


@pytest.mark.parametrize(
    ("law", "settings", "options"),
    [
        (fh.availability.Independent(0.3), {}, {}),
        (RARE, {"server_step": 0.7}, {"local_steps": UNEQUAL_STEPS}),
        (fh.availability.Independent(0.3), {"ball": 0.3}, {"local_steps": UNEQUAL_STEPS, "weighting": "rows"}),
    ],
    ids=["varying cohort", "unequal steps", "unequal weights, projection"],
)
def test_one_upload_gives_the_published_trajectory(law, settings, options):
    with jax.enable_x64(True):
        ours, published = (
            trained(kind(step=0.1, **settings), law, **options) for kind in (ExactScaffold, TextbookScaffold)
        )
    for mine, theirs in (
        (ours.state.server.base, published.state.server.model),
        (ours.state.server.control, published.state.server.control),
        (ours.state.clients, published.state.clients),
        (ours.state.average, published.state.average),
    ):
        for a, b in zip(jax.tree.leaves(mine), jax.tree.leaves(theirs), strict=True):
            assert np.abs(b).max() > 1e-3
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("law", "options"),
    [
        (RARE, {"weighting": "rows", "local_steps": UNEQUAL_STEPS}),
        (fh.availability.Independent(0.3), {}),
        (fh.availability.Everyone(), {}),
    ],
    ids=str,
)
def test_server_control_is_the_mean_of_client_controls(law, options):
    simulation = trained(fh.algorithms.Scaffold(step=0.1), law, **options)
    own = jax.tree.leaves(simulation.state.clients)
    common = jax.tree.leaves(simulation.state.server.control)
    for c_i, c in zip(own, common, strict=True):
        assert np.abs(np.asarray(c)).max() > 0
        np.testing.assert_allclose(np.asarray(c_i, np.float64).mean(axis=0), np.asarray(c), atol=2e-6)


@pytest.mark.parametrize("own", [None, jnp.array([2, 3, 5])])
def test_an_upload_left_out_does_not_enter_the_control(own):
    """c is the mean of all c_i once those whose upload counted have taken their new ones."""
    algorithm, rng = fh.algorithms.Scaffold(step=0.1, server_step=0.5), np.random.default_rng(0)
    before = jnp.asarray(rng.normal(size=(5, 2)), jnp.float32)
    start = algorithm.init_server(fh.algorithms.Start(jnp.zeros(2), 5, np.full(5, 0.2), lambda: 1.0))
    server = start._replace(control=before.mean(axis=0))
    change, steps = jnp.asarray(rng.normal(size=(3, 2)), jnp.float32), 4.0 if own is None else own
    cohort = Cohort(jnp.array([0, 2, 3]), jnp.array([0.25, 0.0, 0.75]), jnp.full(3, 0.2))
    after = algorithm.aggregate(server, Stepped(change, own, 4), cohort)
    fresh = np.array(before)
    for slot, client in ((0, 0), (2, 3)):
        taken = steps if own is None else float(own[slot])
        fresh[client] = fresh[client] - server.control - np.asarray(change[slot]) / (taken * 0.1)
    np.testing.assert_allclose(after.control, fresh.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(after.base, 0.5 * (0.25 * change[0] + 0.75 * change[2]), rtol=1e-6)


def test_state_of_clients_that_did_not_get_through_stays():
    law = fh.availability.Subsets({(0, 1): 0.5, (1, 2): 0.5}, clients=5)
    simulation = trained(fh.algorithms.Scaffold(step=0.1), law)
    for leaf in jax.tree.leaves(simulation.state.clients):
        assert not np.asarray(leaf)[3:].any()
        assert np.asarray(leaf)[:3].any()


def test_one_model_goes_up_and_two_come_down():
    def costs(algorithm, **options):
        return begin(algorithm, fh.models.Linear(), digits(), fh.availability.Everyone(), **options).costs

    parameters = 64 * 10 + 10
    assert costs(fh.algorithms.FedAvg())["uplink"] == parameters
    equal = costs(fh.algorithms.Scaffold())
    assert (equal["uplink"], equal["downlink"]) == (parameters, 2 * parameters)
    assert equal["client_state"] == parameters
    unequal = costs(fh.algorithms.Scaffold(), local_steps=[1] * 29 + [2])
    assert unequal["uplink"] == parameters + 1
    assert costs(fh.algorithms.FedeRage())["uplink"] == parameters + 1


def test_the_message_carries_steps_only_where_they_differ():
    index = jnp.zeros((2, 3, 1), jnp.int32)
    for uniform, expected in ((True, 3.0), (False, [3.0, 1.0])):
        batches = Batches(jnp.zeros(1), jnp.zeros(1), index, None, jnp.array([3, 0]), uniform_steps=uniform)
        sent = Stepped.of(jnp.zeros((2, 4)), batches)
        assert sum(leaf.size for leaf in jax.tree.leaves(sent)) == 8 + (0 if uniform else 2)
        np.testing.assert_array_equal(sent.steps, expected)


@pytest.mark.parametrize("arguments", [{"step": 0.0}, {"server_step": 0.0}, {"step": -1.0}, {"step": "fast"}])
def test_refuses(arguments):
    with pytest.raises(fh.InvalidInput, match=next(iter(arguments))):
        fh.algorithms.Scaffold(**arguments)

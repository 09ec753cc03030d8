"""Controlled FedeRage: uniform mean-CVaR whatever the availability, SCAFFOLD without a tail, its invariant."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

import fedhedge as fh
from federations import same
from fedhedge.algorithms.base import Start
from fedhedge.experiments.absolute_loss import LAW, UNIFORM, averaged, optimum, problem, risk
from least_squares import UNEQUAL_STEPS, costs, trained

TAIL = ((0.3,), (0.8,))
pytestmark = pytest.mark.filterwarnings("ignore:ControlledFedeRage")
SETTINGS = {"alpha": 0.3, "gamma": 0.8, "step": 0.01, "beta_step": 0.01, "cap": 10.0}
METHODS = {
    "ControlledFedeRage": fh.algorithms.ControlledFedeRage(**SETTINGS),
    "FedeRage": fh.algorithms.FedeRage(**SETTINGS),
    "Scaffold": fh.algorithms.Scaffold(step=0.01),
    "FedAvg": fh.algorithms.FedAvg(step=0.01),
}
OBJECTIVES = {
    "ControlledFedeRage": (tuple(UNIFORM), *TAIL),
    "FedeRage": (tuple(LAW.weights()), *TAIL),
    "Scaffold": (tuple(UNIFORM),),
    "FedAvg": (tuple(LAW.weights()),),
}


@functools.cache
def found(name):
    return averaged(METHODS[name], 20_000, local_steps=2)


@pytest.mark.parametrize("claim", OBJECTIVES)
def test_each_method_reaches_the_objective_it_claims_and_no_other(claim):
    """Excess over the optimum by linear programme, of the averaged iterates of all four methods."""
    best = risk(optimum(*OBJECTIVES[claim]), *OBJECTIVES[claim])
    excess = {name: risk(found(name), *OBJECTIVES[claim]) - best for name in METHODS}
    assert all(value > -1e-9 for value in excess.values())
    assert excess.pop(claim) < 0.008
    assert min(excess.values()) > 0.014


@pytest.mark.slow
@pytest.mark.parametrize("kind", [fh.algorithms.Mifa, fh.algorithms.FedVarp, fh.algorithms.CompressedScaffold])
def test_other_memories_reach_the_unweighted_mean_too(kind):
    w = averaged(kind(step=0.01), 20_000, local_steps=2)
    excess = {claim: risk(w, *what) - risk(optimum(*what), *what) for claim, what in OBJECTIVES.items()}
    assert 0 <= excess.pop("Scaffold") < 0.008
    assert min(excess.values()) > 0.014


def test_without_a_tail_it_is_scaffold_bit_for_bit():
    settings = {"step": 0.1, "server_step": 0.7}
    law = fh.availability.Independent(0.3)
    ours = trained(fh.algorithms.ControlledFedeRage(gamma=0.0, **settings), law).state
    plain = trained(fh.algorithms.Scaffold(**settings), law).state
    assert same(ours.server.base.pair.theta, plain.server.base)
    assert same(ours.server.control.theta, plain.server.control)
    assert same(ours.clients.theta, plain.clients)


def written_out(visits, steps, alpha, gamma, eta, eta_beta):
    """The pair and the clients' controls, with a control in each upload, one client and one step at a time."""
    rows = problem()[0].rows("train")[0].astype(float).reshape(5, 4, 3)
    x, c, own = np.zeros(3), np.zeros(3), np.zeros((5, 3))
    rates = np.array([eta, eta, eta_beta])
    for present in visits:
        ends, fresh = [], {}
        for i in np.flatnonzero(present):
            y = x.copy()
            for _ in range(steps[i]):
                residual = rows[i, :, :2] @ y[:2] - rows[i, :, 2]
                w = 1 - gamma + gamma / alpha * (np.mean(residual**2) >= y[2])
                direction = np.append(w * 2 * residual @ rows[i, :, :2] / 4, 1 - w)
                y -= rates * (direction - own[i] + c)
                y[2] = max(y[2], 0.0)
            ends.append(y)
            fresh[i] = own[i] - c + (x - y) / (steps[i] * rates)
        c = c + sum(fresh[i] - own[i] for i in fresh) / 5
        for i, value in fresh.items():
            own[i] = value
        x = np.mean(ends, axis=0)
    return x, own


def test_trajectory_is_the_one_written_out():
    visits = np.random.default_rng(1).random((12, 5)) < 0.5
    visits[visits.sum(axis=1) == 0, 0] = True
    settings = {"alpha": 0.4, "gamma": 0.6, "step": 0.02, "beta_step": 0.1}
    state = trained(
        fh.algorithms.ControlledFedeRage(cap=50.0, **settings), fh.availability.Trace(visits), rounds=12,
        evaluate_every=12, local_steps=UNEQUAL_STEPS,
    ).state  # fmt: skip
    x, own = written_out(visits, UNEQUAL_STEPS, *settings.values())
    pair, controls = state.server.base.pair, state.clients
    np.testing.assert_allclose(np.append(pair.theta, pair.beta), x, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.column_stack([controls.theta, controls.beta]), own, rtol=1e-3, atol=1e-4)
    assert x[2] > 0
    assert np.abs(own).max(axis=0).min() > 0.1


@pytest.mark.parametrize("options", [{}, {"local_steps": UNEQUAL_STEPS, "weighting": "rows"}], ids=str)
def test_server_controls_are_the_means_of_client_controls(options):
    simulation = trained(METHODS["ControlledFedeRage"], fh.availability.Independent(0.3), **options)
    for own, common in zip(
        jax.tree.leaves(simulation.state.clients), jax.tree.leaves(simulation.state.server.control), strict=True
    ):
        assert np.abs(np.asarray(common)).max() > 1e-3
        np.testing.assert_allclose(np.asarray(own, float).mean(axis=0), common, atol=2e-6)


def test_costs():
    each = costs(METHODS["ControlledFedeRage"])
    assert (each["uplink"], each["downlink"], each["client_state"]) == (2 + 1, 2 * (2 + 1) + 1, 2 + 1)


@pytest.mark.parametrize("arguments", [{"beta_step": 0.0}, {"step": 0.0}, {"server_step": -1.0}, {"alpha": 2.0}])
def test_refuses(arguments):
    with pytest.raises(fh.InvalidInput, match=next(iter(arguments))):
        fh.algorithms.ControlledFedeRage(**arguments)


@pytest.mark.parametrize("name", ["FedeRage", "ControlledFedeRage", "SpectralFedeRage", "AdaptiveFedeRage"])
def test_the_default_step_is_a_tenth_of_one_over_kappa_and_no_network_collapses_at_it(name):
    method = fh.algorithms.METHODS[name]()
    assert method.step * method.kappa == pytest.approx(0.1)
    start = Start({}, 3, np.full(3, 1 / 3), lambda: 1.0)
    network = fh.models.Functional(init=lambda key: {}, loss=lambda w, x, y: y, convex=False)
    assert not any("collapse" in text for text in method.warnings(network, start, 10**6, 5))
    large = dataclasses.replace(method, step=10.0 * method.step)
    assert any("collapse" in text for text in large.warnings(network, start, 10**6, 5))

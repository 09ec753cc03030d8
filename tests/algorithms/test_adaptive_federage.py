"""alpha and gamma chosen on the fly, on a problem where the least hedging that meets the target is known."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

import fedhedge as fh
from federations import begin
from fedhedge.algorithms.adaptive_federage import Report
from fedhedge.experiments.absolute_loss import LAW, cvar, losses, mass, optimum, problem, risk
from least_squares import UNEQUAL_STEPS, trained

ALPHA, ROUNDS = 0.2, 40_000
WEIGHTS = tuple(LAW.weights())
Adaptive = fh.algorithms.AdaptiveFedeRage


@functools.cache
def run(target):
    algorithm = Adaptive(target=target, alpha=ALPHA, step=0.005, beta_step=0.005, gamma_step=0.001, cap=10.0)
    clients, model = problem()
    simulation = begin(
        algorithm, model, clients, LAW, rounds=ROUNDS, local_steps=1, batch_size=1, evaluate_every=2_000, evaluate_on=()
    )
    simulation.run(None, False, False)
    return simulation


def late(simulation, metric):
    """Mean of a server metric over the second half."""
    frame = simulation.history.frame()
    return frame[(frame.metric == metric) & (frame["round"] > ROUNDS // 2)]["value"].mean()


def tail(w):
    return cvar(losses(w), mass(WEIGHTS), ALPHA)


def test_target_between_the_extremes_is_met_at_the_least_cost():
    """min E f subject to CVaR <= 0.88, by linear programme; no hedging would miss it, full hedging overpay."""
    plain, hedged, best = optimum(WEIGHTS), optimum(WEIGHTS, (ALPHA,), (1.0,)), optimum(WEIGHTS, (), (), (ALPHA, 0.88))
    assert tail(hedged) < tail(best) == pytest.approx(0.88)
    assert tail(plain) > 0.9
    w = np.asarray(run(0.88).result().average_params, float)
    assert tail(w) == pytest.approx(0.88, abs=0.015)
    assert risk(w, WEIGHTS) - risk(best, WEIGHTS) < 0.012
    assert risk(hedged, WEIGHTS) - risk(best, WEIGHTS) > 0.03
    assert 0.05 < late(run(0.88), "gamma") < 0.95
    # The tail is the stated one: fewer losses than alpha are above a target that their mean meets.
    assert late(run(0.88), "alpha") == pytest.approx(ALPHA, abs=0.02)


def test_target_that_averaging_meets_needs_no_hedge():
    assert late(run(2.0), "gamma") == 0.0
    w = np.asarray(run(2.0).result().average_params, float)
    assert risk(w, WEIGHTS) - risk(optimum(WEIGHTS), WEIGHTS) < 0.005


def test_target_out_of_reach_puts_all_weight_on_what_fails_it():
    """Nothing keeps the worst fifth below 0.6: gamma = 1, and the tail is the share above 0.6."""
    assert tail(optimum(WEIGHTS, (ALPHA,), (1.0,))) > 0.8
    assert late(run(0.6), "gamma") > 0.99
    w = np.asarray(run(0.6).result().average_params, float)
    share = mass(WEIGHTS) @ (losses(w) > 0.6)
    assert late(run(0.6), "alpha") == pytest.approx(max(share, ALPHA), abs=0.05)


def test_the_rule_written_out():
    """Two uploads of one round, weights 0.25 and 0.75."""
    algorithm = Adaptive(target=1.0, alpha=0.1, gamma_step=0.2, memory=0.5)
    server = algorithm.init_server(fh.algorithms.Start(jnp.zeros(1), 2, np.full(2, 0.5), lambda: 1.0))
    assert (float(server.alpha), float(server.gamma)) == (1.0, 0.0)
    pair = server.pair._replace(theta=jnp.zeros((2, 1)), beta=jnp.array([0.0, 0.4]))
    cohort = fh.algorithms.Cohort(jnp.arange(2), jnp.array([0.25, 0.75]), jnp.full(2, 0.5))
    after = algorithm.aggregate(server, Report(pair, jnp.array([1.0, 0.2]), jnp.array([3.0, 1.0])), cohort)
    assert float(after.pair.beta) == pytest.approx(0.3)
    assert float(after.alpha) == pytest.approx(1.0 + 0.5 * (0.4 - 1.0))
    assert float(after.gamma) == pytest.approx(0.2 * (1.5 - 1.0))
    floor = algorithm.aggregate(
        after._replace(alpha=jnp.asarray(0.1)), Report(pair, jnp.zeros(2), jnp.zeros(2)), cohort
    )
    assert float(floor.alpha) == pytest.approx(0.1)
    assert float(floor.gamma) == 0.0


def test_means_over_local_steps_are_sent():
    """With the model and beta still, the report is that of the losses at the start: unequal steps do not count."""
    algorithm = Adaptive(step=0.0, beta_step=0.0, target=0.3, alpha=0.5)
    simulation = trained(algorithm, fh.availability.Everyone(), rounds=1, local_steps=UNEQUAL_STEPS)
    rows = problem()[0].rows("train")[0].astype(float)
    each = np.mean(rows[:, 2].reshape(5, 4) ** 2, axis=1)
    server = simulation.state.server
    assert float(server.gamma) == pytest.approx(max(0.0, 0.005 * (np.mean(each) / 0.5 - 0.3)), rel=1e-5)
    assert float(server.alpha) == pytest.approx(1 - 0.02 * np.mean(each <= 0.3))


@pytest.mark.parametrize("arguments", [{"target": -1.0}, {"alpha": 0.0}, {"gamma_step": -1.0}, {"memory": 0.0}])
def test_refuses(arguments):
    with pytest.raises(fh.InvalidInput, match=next(iter(arguments))):
        Adaptive(**arguments)

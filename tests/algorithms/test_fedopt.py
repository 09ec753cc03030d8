"""Server optimisers: the published updates written out, fixed points, and the bases they take."""

import jax.numpy as jnp
import numpy as np
import pytest

import fedhedge as fh
from federations import same
from fedhedge.algorithms import Cohort
from least_squares import costs, trained
from quadratic_limits import EVERYONE, STEP, balance, contraction, limit

FedOpt = fh.algorithms.FedOpt
SOME = fh.availability.Independent(0.3)
FEDERAGE = fh.algorithms.FedeRage(step=0.05, alpha=0.3, gamma=0.6, beta_step=0.1)


@pytest.mark.filterwarnings("ignore:FedOpt")
@pytest.mark.parametrize("base", [fh.algorithms.FedAvg(0.1), fh.algorithms.FedProx(0.1, mu=0.2), FEDERAGE], ids=str)
def test_no_momentum_and_unit_step_is_the_base_bit_for_bit(base):
    ours = trained(FedOpt(base, optimizer="momentum", beta1=0.0), SOME).state
    plain = trained(base, SOME).state
    assert same(ours.server.base, plain.server)
    assert same(ours.average, plain.average)


def written_out(optimizer, deltas, server_step, beta1, beta2, tau):
    """Reddi et al. 2021, Algorithm 2, one entry at a time; x after each round, from 0."""
    x, m, v = np.zeros(3), np.zeros(3), np.full(3, tau**2)
    found = []
    for delta in deltas:
        for j in range(3):
            d = delta[j]
            m[j] = beta1 * m[j] + (d if optimizer == "momentum" else (1 - beta1) * d)
            if optimizer == "adagrad":
                v[j] = v[j] + d * d
            elif optimizer == "adam":
                v[j] = beta2 * v[j] + (1 - beta2) * d * d
            elif v[j] > d * d:
                v[j] = v[j] - (1 - beta2) * d * d
            else:
                v[j] = v[j] + (1 - beta2) * d * d
            x[j] += server_step * (m[j] if optimizer == "momentum" else m[j] / (np.sqrt(v[j]) + tau))
        found.append(x.copy())
    return found


@pytest.mark.parametrize("optimizer", ["adam", "yogi", "adagrad", "momentum"])
def test_updates_are_the_published_ones(optimizer):
    algorithm = FedOpt(optimizer=optimizer, server_step=0.3, beta1=0.8, beta2=0.9, tau=0.05)
    server = algorithm.init_server(fh.algorithms.Start(jnp.zeros(3), 4, np.full(4, 0.25), lambda: 1.0))
    deltas = np.random.default_rng(0).normal(size=(6, 3)) * np.array([1.0, 0.01, 0.1])
    expected = written_out(optimizer, deltas, 0.3, 0.8, 0.9, 0.05)
    cohort = Cohort(jnp.array([1]), jnp.ones(1), jnp.full(1, 0.25))
    for delta, x in zip(deltas, expected, strict=True):
        up = server.base + jnp.asarray(delta, jnp.float32)
        server = algorithm.aggregate(server, up[None], cohort)
        np.testing.assert_allclose(server.base, x, rtol=2e-5, atol=1e-6)


def test_defaults_are_the_published_ones():
    adam, adagrad, momentum = (FedOpt(optimizer=name) for name in ("adam", "adagrad", "momentum"))
    assert (adam.beta1, adam.beta2, adam.tau) == (0.9, 0.99, 1e-3)
    assert adagrad.beta1 == 0.0
    assert (momentum.beta1, momentum.server_step) == (0.9, 1.0)


@pytest.mark.parametrize(
    "algorithm",
    [
        FedOpt(fh.algorithms.FedAvg(STEP), optimizer="momentum", server_step=0.2),
        FedOpt(fh.algorithms.FedAvg(STEP), optimizer="adam", server_step=0.01, tau=0.1),
        FedOpt(fh.algorithms.FedAvg(STEP), optimizer="adagrad", server_step=0.1, tau=0.1),
    ],
    ids=lambda one: one.optimizer,
)
def test_fixed_point_is_that_of_the_base(algorithm):
    """Where Delta = 0 no rule of these moves."""
    assert limit(algorithm, EVERYONE, [10, 2]) == pytest.approx(balance(contraction([10, 2])), abs=5e-6)


@pytest.mark.filterwarnings("ignore:FedOpt")
def test_beta_of_federage_is_averaged_plainly():
    """With the model still, every server rule leaves beta where FedeRage has it; with it moving, theta differs."""
    still = fh.algorithms.FedeRage(step=0.0, alpha=0.3, gamma=0.6, beta_step=0.1)
    pair = trained(FedOpt(still, server_step=0.5), SOME).state.server.base.pair
    assert same(pair.beta, trained(still, SOME).state.server.pair.beta)
    assert float(pair.beta) > 0.1
    moving = trained(FedOpt(FEDERAGE), SOME).state.server.base.pair
    assert not same(moving.theta, trained(FEDERAGE, SOME).state.server.pair.theta)


def test_costs_are_those_of_the_base_but_for_the_server():
    plain = costs(FEDERAGE)
    for optimizer, more in (("adam", 2 * 2), ("momentum", 2)):
        found = costs(FedOpt(FEDERAGE, optimizer=optimizer))
        assert found == plain | {"server_state": plain["server_state"] + more}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"base": fh.algorithms.Scaffold()}, r"base: received 'Scaffold'; .*already has a rule of its own"),
        ({"base": fh.algorithms.Mifa()}, r"base: received 'Mifa'; .*already has a rule of its own"),
        ({"base": fh.algorithms.FedNova()}, r"base: received 'FedNova'"),
        ({"base": fh.algorithms.DroAdmm()}, r"base: received 'DroAdmm'; .*consensus"),
        ({"base": FedOpt()}, r"base: received 'FedOpt'"),
        ({"base": "FedAvg"}, r"base: received 'FedAvg'; allowed: a method"),
        ({"optimizer": "Adam"}, r"optimizer: received 'Adam'; .*did you mean adam\?"),
        ({"beta1": 1.0}, r"beta1: received 1\.0; allowed: a number in \[0, 1\)"),
        ({"tau": 0.0}, r"tau: received 0\.0"),
        ({"server_step": 0.0}, r"server_step: received 0\.0"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(fh.InvalidInput, match=message):
        FedOpt(**arguments)


def test_it_goes_round_methods_with_weights_of_their_own():
    """The base's neutral setting again, two wrappers deep, with FedeRage's local work."""
    inner = fh.algorithms.ArrivalWeights(base=FEDERAGE)
    ours = trained(FedOpt(inner, optimizer="momentum", beta1=0.0), SOME).state
    assert same(ours.server.base, trained(inner, SOME).state.server)
    moved = trained(FedOpt(inner), SOME).state.server.base
    assert not same(moved.base.pair.theta, ours.server.base.base.pair.theta)

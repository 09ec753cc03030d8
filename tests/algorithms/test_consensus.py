"""What all ADMM methods share: the same sums whoever comes, runs side by side, refusals."""

import dataclasses
import functools
import math

import jax
import numpy as np
import pytest

import fedhedge as fh
from federations import begin, same
from robust_sites import OPTIONS, after, optimum, shares, sites

ADMM = {
    "DroAdmm": fh.algorithms.DroAdmm(tolerance=0.0, rho=5.0),
    "OneVsAllDro": fh.algorithms.OneVsAllDro(tolerance=0.0),
    "DpDroAdmm": fh.algorithms.DpDroAdmm(noise=2.0, lambda_noise=3.0, rounds=30),
    "DpDroAdmm, paper": fh.algorithms.DpDroAdmm(noise=2.0, lambda_noise=3.0, rounds=30, variant="paper"),
    "DpErmAdmm": fh.algorithms.DpErmAdmm(noise=2.0),
}
ALL = ADMM | {"DpSgd": fh.algorithms.DpSgd(noise=2.0)}
# Client 2 never comes.
SOME = fh.availability.Subsets({(0,): 0.4, (0, 1): 0.4, (): 0.2}, clients=3)
# One shape of all runs, so that they share compilations.
ROUNDS = OPTIONS | {"rounds": 12, "evaluate_every": 4, "evaluate_on": ("train",)}


@functools.cache
def start(name):
    """A run, and its clients' states before the first round."""
    with jax.enable_x64(True):
        simulation = begin(ALL[name], fh.models.CrammerSinger(), sites(), SOME, **ROUNDS)
    return simulation, jax.tree.map(np.asarray, simulation.state.clients)


@functools.cache
def ran(name):
    return after(start(name)[0])


def duals(simulation):
    """u_g or mu_g of all clients, with the server's latest mean."""
    clients, server = simulation.state.clients, simulation.state.server
    if hasattr(clients, "dual"):
        return np.asarray(clients.dual) - np.asarray(server.down.dual)
    return np.asarray(clients.total) - np.asarray(simulation.algorithm.broadcast(server))


@pytest.mark.parametrize("name", ADMM)
def test_duals_sum_to_zero_over_all_clients_whoever_came(name):
    found = duals(ran(name))
    assert np.abs(found).max() > 1e-2
    assert np.abs(np.tensordot(shares(sites()), found, 1)).max() < 1e-12


@pytest.mark.parametrize("name", ["DpDroAdmm", "DpErmAdmm"])
def test_center_is_the_mean_of_all_totals(name):
    simulation = ran(name)
    mean = np.tensordot(shares(sites()), np.asarray(simulation.state.clients.total), 1)
    np.testing.assert_allclose(simulation.algorithm.broadcast(simulation.state.server), mean, atol=1e-13)


def test_the_penalty_moved_under_the_duals():
    """The sums above were not those of a run with one rho."""
    algorithm, law = ALL["DroAdmm"], fh.availability.Everyone()
    with jax.enable_x64(True):
        simulation = after(begin(algorithm, fh.models.CrammerSinger(), sites(), law, **ROUNDS))
    assert float(simulation.state.server.down.rho) != algorithm.rho
    assert np.abs(np.tensordot(shares(sites()), duals(simulation), 1)).max() < 1e-12


@pytest.mark.slow
def test_a_client_that_never_comes_counts_as_a_quadratic():
    """The limit is the optimum with rho/2 ||M - M_0||^2 in place of the absent client's risk, and M_0 = 0."""
    rho = 0.3
    algorithm = fh.algorithms.DroAdmm(radius=0.02, norm="l2", rho=rho, tolerance=0.0)
    law = fh.availability.Subsets({(0,): 0.5, (0, 2): 0.5}, clients=3)
    few = sites((6, 8, 10), features=3)
    options = OPTIONS | {"rounds": 150, "evaluate_every": 150}
    with jax.enable_x64(True):
        simulation = after(begin(algorithm, fh.models.CrammerSinger(), few, law, **options))
    _, expected = optimum(few, 0.02, 0.5, "l2", absent=(1,), weight=rho)
    # Strongly convex: the optimum is unique.
    np.testing.assert_allclose(np.asarray(simulation.state.server.down.center), expected, atol=0.02)
    assert np.abs(expected).max() > 0.5


def test_a_checkpoint_without_any_metric_can_be_resumed(tmp_path):
    options = ROUNDS | {"evaluate_on": (), "checkpoint": tmp_path, "progress": False}
    runs = [fh.simulate(ALL["DpSgd"], fh.models.CrammerSinger(), sites(), SOME, **options) for _ in range(2)]
    assert same(runs[0].params, runs[1].params)
    assert len(runs[1].history) == 0


@pytest.mark.slow
def test_runs_side_by_side_are_runs_alone():
    """Different noise, steps and radii in one compiled programme."""
    algorithm = ALL["DpDroAdmm"]
    other = dataclasses.replace(algorithm, noise=3.0, lambda_noise=1.0, row_bound=0.7, radius=0.2, step=3.0, rho=0.3)
    runs = fh.sweep([algorithm, other], fh.models.CrammerSinger(), sites(), SOME, seeds=[0], **ROUNDS)
    np.testing.assert_allclose(runs[0].params, ran("DpDroAdmm").result().params, rtol=1e-9, atol=1e-12)
    alone = fh.simulate(other, fh.models.CrammerSinger(), sites(), SOME, progress=False, **ROUNDS)
    np.testing.assert_allclose(runs[1].params, alone.params, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_refuses_other_models_and_several_local_steps(name):
    def run(clients, model, **options):
        fh.simulate(ALL[name], model, clients, SOME, progress=False, **ROUNDS | options)

    with pytest.raises(fh.InvalidInput, match=r"local_steps: received 2; allowed: 1: a turn is one step"):
        run(sites(), fh.models.CrammerSinger(), local_steps=2)
    with pytest.raises(fh.InvalidInput, match=r"model: received .*; allowed: CrammerSinger\(\)"):
        run(sites(), fh.models.MLP(hidden=(3,)))


@pytest.mark.parametrize(
    ("radius", "message"),
    [
        ((0.1, 0.2), r"radius: received \(0\.1, 0\.2\); allowed: one number, or 3 numbers"),
        ((0.1, -0.2, 0.3), r"radius\[1\]: received -0\.2"),
        (-0.1, r"radius: received -0\.1; allowed: a number in \[0, inf\)"),
        (math.nan, "radius: received nan"),
    ],
)
@pytest.mark.parametrize("name", ["DroAdmm", "DpDroAdmm"])
def test_refuses_radii(name, radius, message):
    with pytest.raises(fh.InvalidInput, match=message):
        dataclasses.replace(ALL[name], radius=radius).init_clients(3, start(name)[0].state.server)

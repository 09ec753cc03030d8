"""What all ADMM methods share: the same sums whoever comes, commit of used uploads only, resume, sweeps, refusals."""

import json
import math

import jax
import numpy as np
import pytest

import fedhedge as fh
from federations import begin, digits, same
from fedhedge.algorithms import METHODS
from fedhedge.simulation import driver
from robust_sites import OPTIONS, after, dual_sum, optimum, risk, shares, sites

ADMM = {
    "DroAdmm": fh.algorithms.DroAdmm(tolerance=0.0),
    "OneVsAllDro": fh.algorithms.OneVsAllDro(tolerance=0.0),
    "DpDroAdmm": fh.algorithms.DpDroAdmm(noise=2.0, lambda_noise=3.0, rounds=30),
    "DpDroAdmm, paper": fh.algorithms.DpDroAdmm(noise=2.0, lambda_noise=3.0, rounds=30, variant="paper"),
    "DpErmAdmm": fh.algorithms.DpErmAdmm(noise=2.0),
}
ALL = ADMM | {"DpSgd": fh.algorithms.DpSgd(noise=2.0)}
EVERYONE = fh.availability.Everyone()
SOME = fh.availability.Subsets({(0,): 0.4, (0, 2): 0.3, (1, 2): 0.3}, clients=3)


def start(name, law, **options):
    with jax.enable_x64(True):
        return begin(ALL[name], fh.models.CrammerSinger(), sites(), law, **OPTIONS | options)


@pytest.mark.parametrize("law", [EVERYONE, SOME, fh.availability.Independent(0.5)], ids=["everyone", "some", "maybe"])
@pytest.mark.parametrize("name", ADMM)
def test_duals_sum_to_zero_whoever_comes(name, law):
    simulation = after(start(name, law, rounds=12, evaluate_every=4))
    total, largest = dual_sum(simulation, sites())
    assert largest > 1e-3
    assert total < 1e-12 * max(1.0, largest)


@pytest.mark.parametrize("name", ["DpDroAdmm", "DpErmAdmm"])
def test_center_is_the_mean_of_all_totals(name):
    simulation = after(start(name, SOME, rounds=9))
    mean = np.tensordot(shares(sites()), np.asarray(simulation.state.clients.total), 1)
    np.testing.assert_allclose(np.asarray(simulation.state.server), mean, atol=1e-13)


@pytest.mark.parametrize("name", ADMM)
def test_clients_that_do_not_come_keep_their_state(name):
    law = fh.availability.Subsets({(0, 1): 1.0}, clients=3)
    simulation = start(name, law, rounds=3)
    initial = jax.tree.map(np.asarray, simulation.state.clients)
    simulation = after(simulation)
    for before, now in zip(jax.tree.leaves(initial), jax.tree.leaves(simulation.state.clients), strict=True):
        assert np.array_equal(before[2], np.asarray(now)[2])


def test_a_client_that_never_comes_counts_as_a_quadratic():
    """The limit is the optimum with rho/2 ||M - M_0||^2 in place of the absent client's risk, and M_0 = 0."""
    rho = 0.3
    algorithm = fh.algorithms.DroAdmm(radius=0.02, norm="l2", rho=rho, tolerance=0.0, balancing=0)
    law = fh.availability.Subsets({(0,): 0.5, (0, 2): 0.5}, clients=3)
    with jax.enable_x64(True):
        simulation = begin(algorithm, fh.models.CrammerSinger(), sites(), law, rounds=400, **OPTIONS)
    found = np.asarray(algorithm.iterate(after(simulation).state.server))
    _, expected = optimum(sites(), 0.02, 0.5, "l2", absent=(1,), weight=rho)
    # With the quadratic the optimum is unique up to one vector added to all rows, which the quadratic fixes too.
    np.testing.assert_allclose(found, expected, atol=5e-3)
    assert risk(np.zeros_like(expected), sites(), 0.02, 0.5, "l2") > risk(expected, sites(), 0.02, 0.5, "l2") + 0.01


class Killed(RuntimeError):
    """Stands for the end of a process."""


@pytest.mark.parametrize("name", ALL)
def test_resume_is_exact(name, tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "CHECKPOINT_SECONDS", -1.0)
    arguments = (ALL[name], fh.models.CrammerSinger(), sites(), SOME)
    options = OPTIONS | {"rounds": 12, "evaluate_every": 3, "evaluate_on": ("train",), "progress": False}
    whole = fh.simulate(*arguments, **options)
    advance, calls = driver.Simulation._advance, []

    def dying(self, *args):
        calls.append(1)
        if len(calls) == 3:
            raise Killed
        advance(self, *args)

    monkeypatch.setattr(driver.Simulation, "_advance", dying)
    with pytest.raises(Killed):
        fh.simulate(*arguments, checkpoint=tmp_path, **options)
    resumed = fh.simulate(*arguments, checkpoint=tmp_path, **options)
    assert len(calls) == 3 + 2
    assert same(resumed.params, whole.params)
    assert same(resumed.average_params, whole.average_params)
    assert resumed.history.equals(whole.history)


@pytest.mark.parametrize("name", ALL)
def test_registered_with_plain_settings(name):
    algorithm = ALL[name]
    assert METHODS[algorithm.name] is type(algorithm)
    settings = algorithm.settings()
    assert json.loads(json.dumps(settings, allow_nan=False)) == settings


@pytest.mark.parametrize(
    "made", [fh.algorithms.DroAdmm, lambda **rest: fh.algorithms.DpDroAdmm(noise=1.0, rounds=9, **rest)]
)
def test_settings_with_trusted_labels_and_radii_fit_into_a_checkpoint(made, tmp_path):
    algorithm = made(label_cost=math.inf, radius=[0.1, 0.2, 0.3])
    fh.simulate(
        algorithm,
        fh.models.CrammerSinger(),
        sites(),
        EVERYONE,
        rounds=2,
        checkpoint=tmp_path,
        progress=False,
        **OPTIONS,
    )
    assert (tmp_path / "checkpoint.npz").exists()


@pytest.mark.parametrize("name", ["DpDroAdmm", "DpDroAdmm, paper", "DpErmAdmm", "DpSgd"])
def test_noise_and_steps_are_traced(name):
    """Runs with other numbers share a compiled programme, and side by side they give what each gives alone."""
    import dataclasses

    other = dataclasses.replace(ALL[name], noise=3.0, row_bound=0.7)
    options = OPTIONS | {"rounds": 5, "evaluate_every": 5}
    runs = fh.sweep([ALL[name], other], fh.models.CrammerSinger(), sites(), EVERYONE, seeds=[4], **options)
    for run, algorithm in zip(runs, (ALL[name], other), strict=True):
        alone = fh.simulate(algorithm, fh.models.CrammerSinger(), sites(), EVERYONE, seed=4, progress=False, **options)
        np.testing.assert_allclose(run.params, alone.params, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_refuses_other_models_and_several_local_steps(name):
    def run(clients, model, **options):
        fh.simulate(ALL[name], model, clients, EVERYONE, rounds=2, progress=False, **OPTIONS | options)

    with pytest.raises(fh.InvalidInput, match=r"local_steps: received 2; allowed: 1: a turn is one step"):
        run(sites(), fh.models.CrammerSinger(), local_steps=2)
    with pytest.raises(fh.InvalidInput, match=r"model: received .*; allowed: CrammerSinger\(\)"):
        run(digits(), fh.models.MLP(hidden=(3,)))


@pytest.mark.parametrize(
    ("radius", "message"),
    [
        ((0.1, 0.2), r"radius: received \(0\.1, 0\.2\); allowed: one number, or 3 numbers"),
        ((0.1, -0.2, 0.3), r"radius\[1\]: received -0\.2"),
        (-0.1, r"radius: received -0\.1; allowed: a number in \[0, inf\)"),
        (math.nan, "radius: received nan"),
    ],
)
@pytest.mark.parametrize(
    "made", [fh.algorithms.DroAdmm, lambda **rest: fh.algorithms.DpDroAdmm(noise=0.0, rounds=9, **rest)]
)
def test_refuses_radii(made, radius, message):
    with pytest.raises(fh.InvalidInput, match=message), jax.enable_x64(True):
        begin(made(radius=radius), fh.models.CrammerSinger(), sites(), EVERYONE, rounds=2, **OPTIONS)

"""Fed DRO against the paper's algorithm written out, and its limit against an outside solver."""

import math

import numpy as np
import pytest

import fedhedge as fh
from fedhedge import dro
from robust_sites import OPTIONS, optimum, risk, shares, sites, tables, watched

EVERYONE = fh.availability.Everyone()


def excess(states, *arguments):
    """Risk of the last consensus above the minimum, as a share of what M = 0 is above it."""
    best, M = optimum(*arguments)
    found = risk(states[-1].down.center, *arguments)
    assert found >= best - 1e-6
    return (found - best) / (risk(np.zeros_like(M), *arguments) - best)


@pytest.mark.parametrize("label_cost", [0.4, math.inf])
def test_every_round_is_the_paper_s_written_out(label_cost):
    """Scaled duals, everybody at work, unequal weights and radii, and rho as it is."""
    radius, rho, norm = (0.01, 0.05, 0.02), 0.2, "l2"
    algorithm = fh.algorithms.DroAdmm(
        radius=radius, label_cost=label_cost, norm=norm, rho=rho, tolerance=0.0, balancing=0
    )
    states, _ = watched(algorithm, sites(), EVERYONE, rounds=6)
    alpha, parts = shares(sites()), tables(sites())
    Mbar = np.zeros(states[0].down.center.shape)
    mu, last = np.zeros((3, *Mbar.shape)), Mbar
    M = list(mu)
    for state in states:
        M = [
            dro.solve_client(X, y, r, label_cost, norm, Mbar - dual, rho, start=before).coef
            for (X, y), r, dual, before in zip(parts, radius, mu, M, strict=True)
        ]
        last, Mbar = Mbar, np.tensordot(alpha, M + mu, 1)
        mu = mu + M - Mbar
        # Two solves of one problem to a gap of 1e-8 may differ by sqrt(2e-8/rho) at most; they start alike.
        np.testing.assert_allclose(state.down.center, Mbar, atol=1e-6)
        spread = math.sqrt(alpha @ ((M - Mbar) ** 2).sum((1, 2))) / max(1.0, np.linalg.norm(Mbar))
        assert float(state.primal_residual) == pytest.approx(spread, abs=1e-6)
        assert float(state.dual_residual) == pytest.approx(rho * np.linalg.norm(Mbar - last), abs=1e-6)


@pytest.mark.parametrize(
    ("norm", "radius", "label_cost"),
    [
        ("l1", 0.02, 0.5),
        ("l2", (0.01, 0.1, 0.03), 0.5),
        pytest.param("l2", 0.05, 2.0, marks=pytest.mark.slow),
        pytest.param("linf", 0.02, math.inf, marks=pytest.mark.slow),
    ],
)
def test_it_tends_to_the_optimum_of_all_rows_weighted(norm, radius, label_cost):
    algorithm = fh.algorithms.DroAdmm(norm=norm, radius=radius, label_cost=label_cost)
    states, simulation = watched(algorithm, sites(), EVERYONE, rounds=400)
    history = simulation.history.frame()
    assert not history.duplicated(["round", "client", "split", "metric"]).any()
    assert history["round"].max() == len(states) == simulation.done
    assert simulation.done < 400
    assert max(states[-1].primal_residual, states[-1].dual_residual) <= 1e-3
    assert excess(states, sites(), radius, label_cost, norm) < 3e-3


@pytest.mark.slow
def test_weights_matter():
    """The optimum under equal weights is another one, so that the agreement above is one with the weights given."""
    algorithm = fh.algorithms.DroAdmm(norm="l2", radius=0.02)
    skewed = sites((4, 8, 60))
    states, _ = watched(algorithm, skewed, EVERYONE, rounds=400, weighting="uniform")
    assert excess(states, skewed, 0.02, 0.5, "l2") > 0.01


@pytest.mark.parametrize(
    "law",
    [
        fh.availability.FixedSize(size=1),
        pytest.param(fh.availability.Independent([0.9, 0.6, 0.3]), marks=pytest.mark.slow),
    ],
    ids=["one", "several"],
)
def test_it_tends_there_whoever_comes(law):
    algorithm = fh.algorithms.DroAdmm(norm="l2", radius=0.02)
    states, simulation = watched(algorithm, sites(), law, rounds=600)
    assert simulation.done < 600
    assert excess(states, sites(), 0.02, 0.5, "l2") < 5e-3


def test_it_does_not_stop_before_everyone_has_come():
    """Two sites agree soon; the third may hold anything."""
    algorithm = fh.algorithms.DroAdmm(norm="l2", radius=0.02, tolerance=0.02)
    law = fh.availability.Subsets({(0, 1): 1.0}, clients=3)
    states, simulation = watched(algorithm, sites(), law, rounds=60)
    assert max(states[-1].primal_residual, states[-1].dual_residual) <= 0.02
    assert simulation.done == 60


@pytest.mark.parametrize("rho", [20.0, pytest.param(0.001, marks=pytest.mark.slow)])
def test_balancing_mends_a_wrong_penalty(rho):
    algorithm = fh.algorithms.DroAdmm(norm="l2", radius=0.02, rho=rho, tolerance=0.0)
    states, _ = watched(algorithm, sites(), EVERYONE, rounds=60)
    fixed, _ = watched(
        fh.algorithms.DroAdmm(norm="l2", radius=0.02, rho=rho, tolerance=0.0, balancing=0), sites(), EVERYONE, rounds=60
    )
    assert 0.01 < float(states[-1].down.rho) < 2.0
    assert excess(states, sites(), 0.02, 0.5, "l2") < 0.2 * excess(fixed, sites(), 0.02, 0.5, "l2")


def test_history_has_residuals_and_certified_risks():
    algorithm = fh.algorithms.DroAdmm(norm="l2", radius=0.02)
    run = fh.simulate(
        algorithm, fh.models.CrammerSinger(), sites(), EVERYONE, rounds=3, evaluate_every=1, progress=False, **OPTIONS
    )
    last = run.history[run.history["round"] == 3].set_index("metric")["value"]
    assert last["solver_gap"] < 1e-7
    assert 0 < last["worst_case_risk"] < 1
    assert {"primal_residual", "dual_residual", "rho"} <= set(last.index)
    assert run.costs["uplink"] == run.params.size
    assert run.costs["downlink"] == 2 * run.params.size + 1


def test_a_solver_cannot_be_compiled():
    with pytest.raises(fh.InvalidInput, match=r'loop: received \'compiled\'; allowed: "host" or "auto"'):
        fh.simulate(fh.algorithms.DroAdmm(), fh.models.CrammerSinger(), sites(), EVERYONE, loop="compiled", **OPTIONS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"norm": "l3"}, "norm: received 'l3'; allowed: l1, l2, linf"),
        ({"rho": 0.0}, r"rho: received 0\.0"),
        ({"tolerance": -1.0}, r"tolerance: received -1\.0"),
        ({"balancing": 1.5}, r"balancing: received 1\.5; allowed: a whole number, 0 or more"),
        ({"label_cost": "inf"}, "label_cost: received 'inf'"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(fh.InvalidInput, match=message):
        fh.algorithms.DroAdmm(**arguments)

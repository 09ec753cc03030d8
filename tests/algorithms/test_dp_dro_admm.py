"""DP-Fed DRO against the paper's algorithm written out in NumPy, and against the exact optimum without noise."""

import dataclasses
import functools
import math

import jax
import numpy as np
import pytest

import fedhedge as fh
from federations import begin
from fedhedge import dro
from robust_sites import OPTIONS, after, noise, optimum, risk, shares, sites, tables, watched

ROUNDS = 8
EVERYONE = fh.availability.Everyone()
SETTINGS = {
    "noise": 1.5, "lambda_noise": 2.5, "rounds": 20, "radius": (0.02, 0.1, 0.05), "label_cost": 0.4, "rho": 0.6,
    "step": 3.0, "lambda_step": 0.7, "lambda_start": 0.3, "penalty": 0.8,
}  # fmt: skip
MORE = [("l2", "default"), ("linf", "default"), ("l2", "paper")]
# Steps for many rounds without noise.
LONG = {"step": 8.0, "penalty": 0.3, "lambda_start": 5.0, "lambda_step": 5.0}


def subgradient_of_risk(M, lam, X, y, kappa):
    """Mean over rows of a subgradient of h, one row at a time."""
    in_model, in_lambda = np.zeros_like(M), 0.0
    for x, own in zip(X, y, strict=True):
        pieces = []
        for label in range(len(M)):
            rival = max((k for k in range(len(M)) if k != label), key=lambda k: M[k] @ x)
            price = 0.0 if label == own else math.inf if math.isinf(kappa) else kappa * lam
            pieces.append((1 + M[rival] @ x - M[label] @ x - price, label == own, label, rival))
        value, kept, label, rival = max(pieces)
        if value > 0:
            in_model[rival] += x / len(X)
            in_model[label] -= x / len(X)
            in_lambda -= 0.0 if kept else kappa / len(X)
    return in_model, in_lambda


def transcription(settings, norm, variant, seed):
    """Mbar after each round: scaled duals, everybody at work, noise from the run's own streams."""
    s, clients = dict(settings), sites()
    parts, alpha = tables(clients), shares(clients)
    K, P = len(clients.classes), clients.features.shape[1]
    kappa, rho, T = s["label_cost"], s["rho"], s["rounds"]
    finite = 0.0 if math.isinf(kappa) else kappa
    V = 1.0 if variant == "paper" else math.sqrt(2 * P) if norm == "linf" else math.sqrt(2)
    Mbar = np.zeros((K, P))
    sites_ = [{"M": Mbar, "mu": np.zeros((K, P)), "lam": s["lambda_start"], "tau": 0.0, "r": r} for r in s["radius"]]
    found = []
    for t in range(ROUNDS):
        for g, ((X, y), c) in enumerate(zip(parts, sites_, strict=True)):
            N, r = len(y), c["r"]
            C = 0.4 if variant == "paper" else r
            spread = s["noise"] * 2 * math.sqrt(2) / N
            eta = s["step"] / (math.sqrt((math.sqrt(2) + C * V) ** 2 + K * P * spread**2) * math.sqrt(T))
            M2 = math.sqrt((max(r, finite - r) + C) ** 2 + (s["lambda_noise"] * finite / N) ** 2)
            nu = s["lambda_step"] / (M2 * math.sqrt(T))
            in_model, in_lambda = subgradient_of_risk(c["M"], c["lam"], X, y, kappa)
            on_model = noise(seed, g, t, 0, (K, P)) * s["noise"] * 2 * math.sqrt(2) / (N * (rho + 1 / eta))
            on_lambda = float(noise(seed, g, t, 1, ())) * s["lambda_noise"] * finite * nu / N
            if variant == "paper":
                force = c["tau"] + s["penalty"] * max(0.0, dro.phi(c["M"], norm) - c["lam"])
                lam = c["lam"] - nu * (r + in_lambda - force) + on_lambda
            else:
                lam = c["lam"] - nu * (r + in_lambda) + on_lambda
                c["tau"] += (r + in_lambda - on_lambda / nu - c["tau"]) / math.sqrt(T)
                force = min(max(c["tau"], 0.0), r)
            G = in_model + force * dro.phi_subgradient(c["M"], norm)
            M = (c["M"] / eta + rho * (Mbar - c["mu"]) - G) / (1 / eta + rho) + on_model
            if variant == "paper":
                c["tau"] = max(0.0, c["tau"] + s["penalty"] * (dro.phi(M, norm) - lam))
            else:
                lam = max(lam, dro.phi(M, norm))
            c["M"], c["lam"] = M, lam
        Mbar = sum(a * (c["M"] + c["mu"]) for a, c in zip(alpha, sites_, strict=True))
        for c in sites_:
            c["mu"] = c["mu"] + c["M"] - Mbar
        found.append(Mbar)
    return found, [c["lam"] for c in sites_]


@pytest.mark.parametrize("label_cost", [0.4, math.inf])
@pytest.mark.parametrize(
    ("variant", "norm"),
    [("paper", "linf"), ("default", "l1"), pytest.param("default", "linf", marks=pytest.mark.slow)],
)
def test_every_round_is_the_paper_s_written_out(variant, norm, label_cost):
    settings = SETTINGS | {"label_cost": label_cost}
    algorithm = fh.algorithms.DpDroAdmm(norm=norm, variant=variant, **settings)
    expected, lambdas = transcription(settings, norm, variant, seed=5)
    states, simulation = watched(algorithm, sites(), EVERYONE, rounds=ROUNDS, seed=5)
    assert len(states) == ROUNDS
    for state, other in zip(states, expected, strict=True):
        np.testing.assert_allclose(state.center, other, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(np.asarray(simulation.state.clients.lambda_), lambdas, rtol=1e-9, atol=1e-11)


def excess(algorithm, radius, label_cost):
    """Risk above its minimum at the end, as a share of what M = 0 is above it."""
    options = OPTIONS | {"rounds": algorithm.rounds, "evaluate_every": algorithm.rounds}
    with jax.enable_x64(True):
        simulation = after(begin(algorithm, fh.models.CrammerSinger(), sites(), EVERYONE, **options))
    arguments = (sites(), radius, label_cost, algorithm.norm)
    best, M = optimum(*arguments)
    found = risk(np.asarray(simulation.state.server.center), *arguments)
    assert found >= best - 1e-6
    return (found - best) / (risk(np.zeros_like(M), *arguments) - best)


@pytest.mark.parametrize(
    ("norm", "variant"),
    [("l1", "default"), *(pytest.param(*pair, marks=pytest.mark.slow) for pair in MORE)],
)
@pytest.mark.parametrize(("radius", "label_cost"), [(0.02, 0.5), (0.05, 2.0), (0.05, math.inf)])
def test_without_noise_it_reaches_the_exact_optimum(norm, variant, radius, label_cost):
    algorithm = fh.algorithms.DpDroAdmm(
        noise=0.0, rounds=1500, radius=radius, label_cost=label_cost, norm=norm, variant=variant, **LONG
    )
    assert excess(algorithm, radius, label_cost) < 0.02


@pytest.mark.parametrize(("averaged", "first"), [(0.0, 20), (0.25, 16), (0.6, 9), (1.0, 1)])
def test_the_result_is_the_mean_of_the_last_rounds(averaged, first):
    """Of 20; with a quarter of them, those from the 16th on."""
    algorithm = fh.algorithms.DpDroAdmm(averaged=averaged, **SETTINGS)
    states, _ = watched(algorithm, sites(), EVERYONE, rounds=20)
    centers = np.array([state.center for state in states])
    np.testing.assert_allclose(states[-1].model, centers[first - 1 :].mean(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(states[first - 1].model, centers[first - 1])
    run = fh.simulate(algorithm, fh.models.CrammerSinger(), sites(), EVERYONE, rounds=20, progress=False, **OPTIONS)
    np.testing.assert_array_equal(run.params, states[-1].model)


@pytest.mark.slow
def test_the_default_feels_the_radius():
    """lam >= phi(M) is more than a bound on lam: without its force the radius would not matter with trusted labels."""
    algorithm = fh.algorithms.DpDroAdmm(noise=0.0, rounds=1500, radius=0.0, label_cost=math.inf, norm="l2", **LONG)
    assert excess(algorithm, 0.05, math.inf) > 0.2


def test_lambda_never_falls_below_phi_in_the_default():
    algorithm = dataclasses.replace(fh.algorithms.DpDroAdmm(norm="l1", **SETTINGS), radius=0.3)
    states = watched(algorithm, sites(), EVERYONE, rounds=ROUNDS)[1].state.clients
    bounds = [dro.phi(model, "l1") for model in np.asarray(states.model)]
    assert (np.asarray(states.lambda_) >= bounds).all()


def test_variants_take_their_own_steps_and_more_rounds_than_planned_are_said():
    made = functools.partial(fh.algorithms.DpDroAdmm, noise=1.0, lambda_noise=1.0, rounds=10)
    assert (made().step, made().lambda_start, made().averaged) == (16.0, 5.0, 0.25)
    paper = made(variant="paper")
    assert (paper.step, paper.lambda_start, paper.averaged) == (1.0, 0.0, 0.0)
    assert made(label_cost=math.inf).lambda_start == 0.0
    assert made(variant="paper", step=3.0).step == 3.0
    assert made().warnings(None, None, 10, 1) == []
    assert "made for 10 rounds, and this run may take 11" in made().warnings(None, None, 11, 1)[0]

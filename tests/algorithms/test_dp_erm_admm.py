"""DP-Fed ERM against its algorithm written out, and against the exact optimum without noise."""

import math

import cvxpy as cp
import numpy as np
import pytest

import fedhedge as fh
from robust_sites import hinge_subgradient, noise, shares, sites, tables, watched

EVERYONE = fh.availability.Everyone()


def test_every_round_is_the_algorithm_written_out():
    m, reg, rho, c_w, seed = 1.5, 0.05, 0.6, 3.0, 7
    algorithm = fh.algorithms.DpErmAdmm(noise=m, reg=reg, rho=rho, diameter=c_w)
    centers, _ = watched(algorithm, sites(), EVERYONE, rounds=8, seed=seed)
    alpha, parts = shares(sites()), tables(sites())
    Mbar = np.zeros(centers[0].shape)
    models, mu = [Mbar] * 3, [Mbar] * 3
    for t, center in enumerate(centers):
        for g, (X, y) in enumerate(parts):
            sigma = m * 2 * math.sqrt(2) / len(y)
            M_w = math.sqrt((math.sqrt(2) + reg * c_w) ** 2 + Mbar.size * sigma**2)
            eta = c_w / (math.sqrt(2 * (t + 1)) * M_w)
            G = hinge_subgradient(models[g], X, y) + reg * models[g]
            M = (models[g] / eta + rho * (Mbar - mu[g]) - G) / (1 / eta + rho)
            models[g] = M + noise(seed, g, t, 0, M.shape) * sigma / (rho + 1 / eta)
        Mbar = sum(a * (M + dual) for a, M, dual in zip(alpha, models, mu, strict=True))
        mu = [dual + M - Mbar for dual, M in zip(mu, models, strict=True)]
        np.testing.assert_allclose(center, Mbar, rtol=1e-9, atol=1e-12)


def objective(M, reg, maximum, positive, squares):
    value = reg / 2 * squares(M)
    for share, (X, y) in zip(shares(sites()), tables(sites()), strict=True):
        for x, own in zip(X, y, strict=True):
            rival = maximum([M[k] @ x for k in range(3) if k != own])
            value += share / len(y) * positive(1 + rival - M[own] @ x)
    return value


def test_without_noise_it_reaches_the_exact_optimum():
    reg, M = 0.05, cp.Variable((3, 4))
    problem = cp.Problem(cp.Minimize(objective(M, reg, lambda parts: cp.maximum(*parts), cp.pos, cp.sum_squares)))
    problem.solve(solver="CLARABEL")
    algorithm = fh.algorithms.DpErmAdmm(noise=0.0, reg=reg)
    centers, _ = watched(algorithm, sites(), EVERYONE, rounds=2000, evaluate_every=2000)
    found = objective(centers[-1], reg, max, lambda a: max(a, 0.0), lambda M: (M**2).sum())
    assert -1e-6 < found - problem.value < 2e-3 * (1 - problem.value)


def test_turns_are_each_client_s_own():
    """eta_k counts the turns of the client, not the rounds."""
    law = fh.availability.Subsets({(0, 1): 0.5, (0, 2): 0.5}, clients=3)
    _, simulation = watched(fh.algorithms.DpErmAdmm(noise=1.0), sites(), law, rounds=8)
    came = simulation.result().participation["client"].value_counts().sort_index()
    assert len(set(came)) > 1
    np.testing.assert_array_equal(np.asarray(simulation.state.clients.turns), came)


@pytest.mark.parametrize("arguments", [{"reg": -1.0}, {"diameter": 0.0}])
def test_refuses(arguments):
    name, value = next(iter(arguments.items()))
    with pytest.raises(fh.InvalidInput, match=f"{name}: received {value}"):
        fh.algorithms.DpErmAdmm(noise=1.0, **arguments)

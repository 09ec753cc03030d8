"""One-vs-all DRO against K binary robust problems of an outside solver."""

import math

import cvxpy as cp
import numpy as np
import pytest

import fedhedge as fh
from robust_sites import DUAL, shares, sites, tables, watched


def binary_optimum(clients, k, radius, label_cost, norm):
    """min over w of sum_g alpha_g (r lam_g + mean max(hinge(s w.x), hinge(-s w.x) - kappa lam_g)), lam_g >= ||w||_*."""
    w, value, constraints = cp.Variable(clients.features.shape[1]), 0.0, []
    for share, (X, y) in zip(shares(clients), tables(clients), strict=True):
        sign, lam = np.where(y == k, 1.0, -1.0), cp.Variable()
        losses = cp.pos(1 - cp.multiply(sign, X @ w))
        if math.isfinite(label_cost):
            losses = cp.maximum(losses, cp.pos(1 + cp.multiply(sign, X @ w)) - label_cost * lam)
        value += share * (radius * lam + cp.sum(losses) / len(y))
        constraints.append(cp.norm(w, DUAL[norm]) <= lam)
    problem = cp.Problem(cp.Minimize(value), constraints)
    problem.solve(solver="CLARABEL")
    return problem.value


def binary_risk(w, clients, k, radius, label_cost, norm):
    """The same at a given w, minimised over each lam on its breakpoints."""
    total = 0.0
    for share, (X, y) in zip(shares(clients), tables(clients), strict=True):
        margin = np.where(y == k, 1.0, -1.0) * (X @ w)
        own, other = np.maximum(0, 1 - margin), np.maximum(0, 1 + margin)
        least = np.linalg.norm(w, {"inf": np.inf, 2: 2, 1: 1}[DUAL[norm]])
        lams = [least] if math.isinf(label_cost) else [least, *np.maximum(least, (other - own) / label_cost)]
        price = [0.0 if math.isinf(label_cost) else label_cost * lam for lam in lams]
        worst = [own if math.isinf(label_cost) else np.maximum(own, other - cost) for cost in price]
        total += share * min(radius * lam + loss.mean() for lam, loss in zip(lams, worst, strict=True))
    return total


@pytest.mark.parametrize(
    ("norm", "radius", "label_cost"), [("l2", 0.02, 0.5), pytest.param("linf", 0.05, math.inf, marks=pytest.mark.slow)]
)
def test_every_class_reaches_its_own_optimum(norm, radius, label_cost):
    algorithm = fh.algorithms.OneVsAllDro(norm=norm, radius=radius, label_cost=label_cost)
    states, simulation = watched(algorithm, sites(), fh.availability.Everyone(), rounds=400)
    assert simulation.done < 400
    for k, w in enumerate(states[-1].down.center):
        best = binary_optimum(sites(), k, radius, label_cost, norm)
        found = binary_risk(w, sites(), k, radius, label_cost, norm)
        assert -1e-6 < found - best < 2e-3


def test_two_classes_are_one_problem_and_its_mirror_image():
    algorithm = fh.algorithms.OneVsAllDro(norm="l2", radius=0.02)
    states, _ = watched(algorithm, sites(classes=2), fh.availability.Everyone(), rounds=20)
    first, second = states[-1].down.center
    np.testing.assert_allclose(first, -second, atol=1e-5)
    assert np.abs(first).max() > 0.5

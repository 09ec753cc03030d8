"""Exact client solves that start from an earlier solution, given as a model alone so that it can be client state."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from fedhedge.dro import ClientSolution, Warm, solve_client, steepest_direction, worst_case_risk
from fedhedge.dro.norms import dual_norm
from fedhedge.dro.problem import Floats
from fedhedge.dro.working_set import Cuts, Pieces, WorkingSet

# A piece or a norm this near to the largest is one of those that meet at the earlier solution.
_NEAR = 1e-6
_TOLERANCE = 1e-8


def solve_near(
    X: Floats, y: Any, radius: float, label_cost: float, norm: str, center: Floats, rho: float, earlier: Floats
) -> ClientSolution:
    """`dro.solve_client`, started from `earlier` [K, P], a solution for the same rows and another center.

    The result is certified like any other: where the start leads nowhere, the problem is solved from scratch.
    """
    arguments = (X, y, radius, label_cost, norm, center, rho)
    warm = _warm(X, y, radius, label_cost, norm, earlier)
    if warm is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            found = solve_client(*arguments, tolerance=_TOLERANCE, warm=warm)
        if found.gap <= _TOLERANCE * max(1.0, found.objective):
            return found
    return solve_client(*arguments, tolerance=_TOLERANCE)


def _warm(X: Floats, y: Any, radius: float, label_cost: float, norm: str, coef: Floats) -> Warm | None:
    """The working set at a model: what is active there. None where too much is, as at a model of equal rows."""
    lam = worst_case_risk(coef, X, y, radius, label_cost, norm).lam
    classes, every = len(coef), np.arange(len(X))
    # Piece 0 is the zero piece, in which rival and label agree.
    rival, label = (np.append(0, side) for side in np.nonzero(~np.eye(classes, dtype=bool)))
    scores = X @ coef.T
    flips = (label != y[:, None]) & (rival != label)
    priced = math.isfinite(label_cost) and (radius > 0.0 or label_cost == 0.0)
    price = label_cost * lam if priced else math.inf
    pieces = np.where(rival == label, 0.0, 1.0 + scores[:, rival] - scores[:, label]) - np.where(flips, price, 0.0)
    base = pieces.argmax(1)
    meeting = pieces > pieces.max(1, keepdims=True) - _NEAR
    meeting[every, base] = False
    row, piece = np.nonzero(meeting)
    if len(row) > 4 * (coef.size + 1):
        return None
    cuts = _cuts(coef, lam, norm) if radius > 0.0 else _cuts(coef, math.inf, norm)
    working_set = WorkingSet(Pieces(every, rival[base], label[base]), Pieces(row, rival[piece], label[piece]), cuts)
    return Warm((X.shape, classes, float(radius), float(label_cost), norm), coef, working_set)


def _cuts(coef: Floats, lam: float, norm: str) -> Cuts:
    """Cuts of the pairs whose norm is lam, with the directions that meet there."""
    first, second = np.triu_indices(len(coef), 1)
    differences = coef[first] - coef[second]
    binding = np.flatnonzero(dual_norm(norm, differences) > lam - _NEAR)
    found = [_directions(differences[pair], norm) for pair in binding]
    directions = np.concatenate([np.zeros((0, coef.shape[1])), *found])
    pairs = np.repeat(binding, [len(some) for some in found])
    return Cuts(first[pairs], second[pairs], directions, np.zeros(len(pairs)))


def _directions(difference: Floats, norm: str) -> Floats:
    """Feature directions of unit norm that attain the dual norm of a difference, or nearly do [m, P]."""
    if norm == "l1":
        largest = np.abs(difference) > np.abs(difference).max() - _NEAR
        units: Floats = np.diag(np.sign(difference))[largest]
        return units
    steepest = steepest_direction(norm, difference[None])
    if norm == "l2":
        return np.asarray(steepest)
    free = np.flatnonzero(np.abs(difference) < _NEAR)
    directions = np.repeat(np.where(np.abs(difference) < _NEAR, 1.0, steepest), len(free) + 1, axis=0)
    directions[1 + np.arange(len(free)), free] = -1.0
    return directions

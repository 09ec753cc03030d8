"""Worst-case risk of a fixed model over a Wasserstein ball, and a distribution that attains or approaches it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fedhedge import checks
from fedhedge.dro.loss import LabelPieces, label_pieces
from fedhedge.dro.norms import pair_norms, phi, steepest_direction
from fedhedge.dro.problem import Floats, Ints, Problem, matrix


class WorstCase(NamedTuple):
    """Worst-case risk and the smallest multiplier lam that attains it in the dual."""

    value: float
    lam: float


class Distribution(NamedTuple):
    """Atoms of a finite distribution: features [A, P], class indices [A], weights [A] that sum to 1."""

    X: Floats
    y: Ints
    weights: Floats


class _Flips(NamedTuple):
    """Loss of each row under its own label, under its worst other label (and which), and the difference."""

    nominal: Floats
    other: Floats
    label: Ints
    gain: Floats


def worst_case_risk(coef: Any, X: Any, y: Any, radius: float, label_cost: float, norm: str) -> WorstCase:
    """Largest expected loss over the Wasserstein-1 ball of `radius` r round the rows, by its exact dual.

    min over lam >= phi(M) of r lam + (1/N) sum_i max(l(M; x_i, y_i), max_{k != y_i} l(M; x_i, k) - kappa lam), a
    convex piecewise linear function of one number, solved in closed form. Transport costs ||x - x'|| in `norm` plus
    kappa = `label_cost` per changed label; features range over all of R^P.

    An infinite `label_cost` is the limit of growing costs. It is exact once each pair of classes has a class among
    the labels, and an upper bound otherwise, as the slope phi may belong to labels that no mass can take.

    Shapes: `coef` [K, P], `X` [N, P], `y` [N]. Raises InvalidInput on values that cannot be used. Source: the duality
    of Shafieezadeh-Abadeh, Kuhn and Mohajerin Esfahani, Regularization via mass transportation (2019), for two classes.
    """
    coef = matrix("coef", coef)
    problem = Problem.checked(X, y, radius, label_cost, norm, classes=len(coef))
    return evaluate(coef, problem)


def evaluate(coef: Floats, problem: Problem) -> WorstCase:
    """`worst_case_risk` for arguments that are checked already."""
    return dual_value(label_pieces(coef, problem.X, problem.y), float(phi(coef, problem.norm)), problem)


def dual_value(pieces: LabelPieces, slope: float, problem: Problem) -> WorstCase:
    """Minimum of the dual over lam >= slope, given the pieces of every row."""
    lam = slope
    losses = np.maximum(0.0, pieces.own)
    if math.isfinite(problem.label_cost):
        other = np.maximum(0.0, pieces.other)
        lam = max(lam, _balanced_multiplier(other - losses, problem))
        losses = np.maximum(losses, other - problem.label_cost * lam)
    return WorstCase(problem.radius * lam + float(losses.mean()), lam)


def worst_case_distribution(
    coef: Any, X: Any, y: Any, radius: float, label_cost: float, norm: str, tolerance: float = 1e-6
) -> Distribution:
    """A finite distribution in the ball whose expected loss is the worst-case risk, or within `tolerance` below it.

    Labels are flipped in order of what each flip gains until the budget r is spent (the risk is attained). When all
    flips that pay are made and budget is left, lam = phi(M): a part of one row moves along the steepest direction,
    and the smaller the part, the further it goes and the nearer the loss comes to the supremum.

    At most N + 1 atoms. Arguments and errors as in `worst_case_risk`. With an infinite `label_cost` no label is
    flipped, so that the distribution may stay below the risk where that is an upper bound only.
    """
    coef = matrix("coef", coef)
    problem = Problem.checked(X, y, radius, label_cost, norm, classes=len(coef))
    tolerance = checks.number("tolerance", tolerance, above=0.0)
    flips = _flips(coef, problem)
    slope = float(phi(coef, norm))
    rows = len(problem.y)
    cost = problem.label_cost
    pays = flips.gain > cost * slope if math.isfinite(cost) else np.zeros(rows, dtype=bool)
    order = np.argsort(-flips.gain, kind="stable")[: int(pays.sum())]
    affordable = rows * problem.radius / cost if cost > 0.0 else math.inf
    whole = order[: math.floor(min(affordable, len(order)))]
    flipped = np.zeros(rows, dtype=bool)
    flipped[whole] = True
    atoms = Distribution(problem.X, np.where(flipped, flips.label, problem.y), np.full(rows, 1.0 / rows))
    if affordable < len(order):
        part = order[len(whole)]
        return _split(atoms, part, problem.X[part], flips.label[part], (affordable - len(whole)) / rows)
    left = problem.radius - (cost * len(whole) / rows if cost < math.inf else 0.0)
    return _transport(coef, problem, atoms, flips, flipped, left, tolerance) if left > 0.0 else atoms


def _flips(coef: Floats, problem: Problem) -> _Flips:
    pieces = label_pieces(coef, problem.X, problem.y)
    nominal, other = np.maximum(0.0, pieces.own), np.maximum(0.0, pieces.other)
    return _Flips(nominal, other, pieces.other_label, other - nominal)


def _balanced_multiplier(gain: Floats, problem: Problem) -> float:
    """Smallest lam >= 0 at which the rows whose flip still pays cost no more than the budget."""
    if problem.label_cost == 0.0:
        return 0.0
    affordable = problem.radius * len(gain) / problem.label_cost
    if affordable >= len(gain):
        return 0.0
    position = len(gain) - 1 - math.floor(affordable)
    return max(0.0, float(np.partition(gain, position)[position]) / problem.label_cost)


def _transport(
    coef: Floats,
    problem: Problem,
    atoms: Distribution,
    flips: _Flips,
    flipped: np.ndarray[Any, np.dtype[np.bool_]],
    budget: float,
    tolerance: float,
) -> Distribution:
    """Spend what is left of the budget on moving part of one row far along the steepest direction it can take."""
    slopes = pair_norms(coef, problem.norm)
    label_cost = problem.label_cost
    if math.isinf(label_cost):
        reachable = np.isin(np.arange(problem.classes), problem.y)
        slopes = np.where(reachable, slopes, -math.inf)
    slope = slopes.max()
    if slope <= 0.0:
        return atoms
    current = np.where(flipped, flips.other, flips.nominal)
    best: tuple[float, float, int, int, Floats] | None = None
    for rival, label in np.argwhere(slopes >= slope * (1.0 - 1e-12)):
        difference = coef[rival] - coef[label]
        needs_flip = problem.y != label
        if math.isinf(label_cost):
            extra = np.where(needs_flip, math.inf, 0.0)
        else:
            extra = label_cost * (needs_flip * 1.0 - flipped * 1.0)
        # What the part loses at once, before it starts to move, per unit of mass.
        shortfall = current - 1.0 - problem.X @ difference + slope * extra
        row = int(shortfall.argmin())
        if best is None or shortfall[row] < best[0]:
            best = (shortfall[row], extra[row], row, int(label), steepest_direction(problem.norm, difference))
    assert best is not None
    short, extra_cost, row, label, direction = best
    mass = 1.0 / len(current)
    if short > 0.0:
        mass = min(mass, tolerance / short)
    if extra_cost > 0.0:
        mass = min(mass, 0.5 * budget / extra_cost)
    distance = budget / mass - extra_cost
    return _split(atoms, row, problem.X[row] + distance * direction, label, mass)


def _split(atoms: Distribution, row: int, x: Floats, label: int, mass: float) -> Distribution:
    """Move `mass` of an atom to (x, label); atoms left without mass are dropped."""
    weights = np.append(atoms.weights, mass)
    weights[row] -= mass
    kept = weights > 0.0
    return Distribution(np.vstack([atoms.X, x])[kept], np.append(atoms.y, label)[kept], weights[kept])

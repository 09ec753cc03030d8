"""The client problem restricted to a working set, solved in its dual as a small dense quadratic programme.

With G = sum_i (piece of row i) + sum_c theta_c (e_j - e_k) u_c^T, the model is M = C - G/(N rho); the unknowns are the
weights of the extra pieces (convex combinations in each row) and of the cuts, whose total is bounded by the budget
N r - kappa (weight of the flipped pieces), the stationarity condition in lam >= 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import piqp
from scipy.linalg import cho_factor, cho_solve

from fedhedge.dro.cuts import Cuts
from fedhedge.dro.problem import Floats, Ints, Problem
from fedhedge.dro.working_set import Point, WorkingSet

# Curvature grows without limit as a pair of rows collapses; beyond this many times N rho it only costs digits.
_STIFFEST = 1e6
_RIDGE = 1e-10


@dataclass(frozen=True)
class ReducedSolution:
    """Point that solves the reduced problem and what its weights certify about the whole problem.

    `pull` is sum of the weighted pieces and cuts over N, a subgradient of the worst-case risk, shape [K, P];
    `constant` is the constant of the weighted pieces over N: constant + <pull, M> - excess lam bounds r lam + mean h_i
    from below, where `excess`, the budget overspent by rounding over N, is zero or nearly so.
    """

    point: Point
    pull: Floats
    constant: float
    excess: float


class _Metric:
    """H = N rho + curvature of phi at the cuts: sum_c w_c (e_j - e_k)(e_j - e_k)^T x (I - u_c u_c^T).

    The identity part is a K x K matrix; the u u^T parts are one rank each, along vectors that are columns already.
    """

    def __init__(self, weight: float, signs: Floats, vectors: Floats, curvature: Floats) -> None:
        classes = signs.shape[1]
        self.signs, self.vectors = signs, vectors
        self.curved = np.flatnonzero(curvature > 0.0)
        curved, strength = signs[self.curved], curvature[self.curved]
        self.inverse = np.linalg.inv(weight * np.eye(classes) + (curved.T * strength) @ curved)
        gram = (vectors @ vectors.T) * (signs @ self.inverse @ signs.T)
        if len(self.curved):
            across = gram[:, self.curved]
            self.core = np.linalg.inv(np.diag(1.0 / strength) - across[self.curved])
            gram = gram + across @ self.core @ across.T
        self.gram = gram

    def solve(self, right: Floats) -> Floats:
        """H^-1 applied to a K x P matrix."""
        result = self.inverse @ right
        if len(self.curved):
            signs, vectors = self.signs[self.curved], self.vectors[self.curved]
            along = ((signs @ result) * vectors).sum(1)
            result = result + self.inverse @ (signs.T * (self.core @ along)) @ vectors
        return result


def solve_reduced(problem: Problem, center: Floats, rho: float, working_set: WorkingSet) -> ReducedSolution:
    """Minimise r lam + (mean of the kept pieces' maxima) + rho/2 ||M - C||^2 subject to the kept cuts (rho > 0)."""
    base, extra, cuts = working_set.base, working_set.extra, working_set.cuts
    rows, classes = len(problem.y), problem.classes
    cuts = cuts._replace(curvature=np.minimum(cuts.curvature, _STIFFEST * rows * rho))
    base_signs, base_constant, base_flip = base.signs(classes), base.constants(), base.flips(problem.y)
    fixed = base_signs.T @ problem.X
    gains = extra.constants() - base_constant[extra.row]
    charges = problem.finite_cost * (extra.flips(problem.y) - base_flip[extra.row])
    budget = rows * problem.radius - problem.finite_cost * float(base_flip.sum())

    # Columns: extra pieces, cuts, tied and free loose coordinates. A tied weight in [-w, w] is solved for as -w plus
    # one in [0, 2w], which takes one constraint instead of two.
    tied, free = np.nonzero(cuts.tied), np.nonzero(cuts.loose & ~cuts.tied)
    owner, coordinate = np.concatenate([tied, free], axis=1)
    cut_signs = cuts.signs(classes)
    signs = np.concatenate([extra.signs(classes) - base_signs[extra.row], cut_signs, cut_signs[owner]])
    directions = cuts.direction - cuts.tied
    vectors = np.concatenate([problem.X[extra.row], directions, np.eye(problem.X.shape[1])[coordinate]])
    curvature = np.zeros(len(signs))
    m, q = len(extra.row), len(cuts.first)
    curvature[m : m + q] = cuts.curvature
    metric = _Metric(rows * rho, signs, vectors, curvature)
    target = rows * rho * center - fixed
    linear = ((signs @ metric.solve(target)) * vectors).sum(1)
    linear[:m] += gains
    weights, lam = _maximise(metric.gram, linear, extra.row, charges, budget, tied[0], _ridge(cuts.weight, free[0]))

    piece, cut, loose = np.split(weights, [m, m + q])
    loose[: len(tied[0])] -= cut[tied[0]]
    piece, cut, excess = _feasible(piece, cut, extra.row, charges, budget)
    force = np.zeros(cuts.loose.shape)
    force[owner, coordinate] = loose

    pieces_pull = fixed + (signs[:m] * piece[:, None]).T @ vectors[:m]
    cut_force = cut[:, None] * cuts.direction
    coef = metric.solve(rows * rho * center - pieces_pull - cut_signs.T @ (cut_force + force))
    # Free coordinates may have left their limits, which the model shows and the bound must not.
    cut_force += np.clip(force, -cut[:, None], cut[:, None])
    pull = pieces_pull + cut_signs.T @ _with_curvature(cuts, cut, cut_force, coef)
    constant = (float(base_constant.sum()) + float(gains @ piece)) / rows
    return ReducedSolution(Point(coef, lam, piece, cut, force), pull / rows, constant, excess / rows)


def _feasible(piece: Floats, cut: Floats, row: Ints, charges: Floats, budget: float) -> tuple[Floats, Floats, float]:
    """Weights of pieces and cuts that respect their limits to the last bit, and what they still overspend.

    Otherwise rounding in the solver would spoil the lower bound.
    """
    piece, cut = np.maximum(piece, 0.0), np.maximum(cut, 0.0)
    piece /= np.maximum(np.bincount(row, piece)[row], 1.0)
    spent = charges * piece
    if spent.sum() > budget:
        costly = spent > 0.0
        piece[costly] *= max(0.0, budget - spent[~costly].sum()) / max(spent[costly].sum(), 1e-300)
    left = budget - float(charges @ piece)
    if cut.sum() > max(0.0, left):
        cut *= max(0.0, left) / cut.sum()
    return piece, cut, max(0.0, -left)


def _with_curvature(cuts: Cuts, weight: Floats, force: Floats, coef: Floats) -> Floats:
    """Add the force of the curvature to that of the cuts; a pair's norm is kept within the weight of its cuts."""
    curved = np.flatnonzero(cuts.curvature > 0.0)
    if len(curved) == 0:
        return force
    direction = cuts.direction[curved]
    difference = cuts.differences(coef)[curved]
    across = difference - (difference * direction).sum(1, keepdims=True) * direction
    force[curved] += cuts.curvature[curved, None] * across
    pair = np.unique(cuts.first * len(coef) + cuts.second, return_inverse=True)[1]
    together = np.zeros((int(pair.max()) + 1, force.shape[1]))
    np.add.at(together, pair, force)
    size = np.sqrt((together * together).sum(1))
    allowed = np.bincount(pair, weight)
    shrink = np.where(size > allowed, allowed / np.where(size > 0.0, size, 1.0), 1.0)
    return force * shrink[pair, None]


def _ridge(weight: Floats, owner: Ints) -> Floats:
    """Tiny relative ridge for free coordinates, heavier where their cut carries less.

    The forces of several pairs at one feature are not determined one by one; of those with the same sum, the ridge
    picks some that are small against their limits.
    """
    largest = weight.max(initial=0.0)
    ridge: Floats = _RIDGE * (largest / np.maximum(weight[owner], max(1e-3 * largest, 1e-300))) ** 2
    return ridge


def _maximise(
    gram: Floats, linear: Floats, row: Ints, charges: Floats, budget: float, owner: Ints, ridge: Floats
) -> tuple[Floats, float]:
    """Maximise linear.w - w.gram.w / 2 over the weights of pieces, cuts, tied and free coordinates, in this order.

    All but the free weights, which get a `ridge`, are bounded as in `_maximise_bounded`. Returns w and lam.
    """
    free = len(ridge)
    if free == 0:
        return _maximise_bounded(gram, linear, row, charges, budget, owner)
    own = gram[-free:, -free:]
    factor = cho_factor(own + np.diag(own.diagonal() * ridge))
    across = gram[:-free, -free:]
    shift, slope = cho_solve(factor, linear[-free:]), cho_solve(factor, across.T)
    bounded, lam = _maximise_bounded(
        gram[:-free, :-free] - across @ slope, linear[:-free] - across @ shift, row, charges, budget, owner
    )
    return np.concatenate([bounded, shift - slope @ bounded]), lam


def _maximise_bounded(
    gram: Floats, linear: Floats, row: Ints, charges: Floats, budget: float, owner: Ints
) -> tuple[Floats, float]:
    """Maximise linear.w - w.gram.w / 2 over the weights of pieces, cuts and tied coordinates, in this order.

    Weights are at least 0; those of pieces sum to at most 1 in each row; those of tied coordinates are at most twice
    their `owner`'s; charges.pieces + sum of cuts <= budget, whose multiplier, lam, is returned with the weights.
    """
    size, m = len(linear), len(row)
    if size == 0:
        return np.zeros(0), 0.0
    members = np.bincount(row)
    shared = np.flatnonzero(members > 1)
    tied = np.arange(size - len(owner), size)
    constraints = np.zeros((1 + len(shared) + len(owner), size), order="F")
    constraints[0, :m] = charges
    constraints[0, m : size - len(owner)] = 1.0
    position = np.zeros(len(members), dtype=np.intp)
    position[shared] = 1 + np.arange(len(shared))
    inside = np.flatnonzero(position[row])
    constraints[position[row[inside]], inside] = 1.0
    ties = np.arange(1 + len(shared), len(constraints))
    constraints[ties, tied] = 1.0
    constraints[ties, m + owner] = -2.0
    # Rounding may leave a budget that the cheapest pieces exceed by a hair.
    cheapest = np.zeros(len(members))
    np.minimum.at(cheapest, row, charges)
    limits = np.zeros(len(constraints))
    limits[0] = max(budget, float(cheapest.sum()))
    limits[1 : 1 + len(shared)] = 1.0
    upper = np.full(size, np.inf)
    upper[:m] = 1.0
    solver = piqp.DenseSolver()
    settings = solver.settings
    settings.eps_abs, settings.eps_rel = 1e-9, 0.0
    settings.eps_duality_gap_abs, settings.eps_duality_gap_rel = 1e-8, 0.0
    settings.max_iter = 50
    solver.setup(np.asfortranarray(gram), -linear, None, None, constraints, None, limits, np.zeros(size), upper)
    # Whatever the solver says of its own success, the caller certifies the result by itself.
    solver.solve()
    found = np.array(solver.result.x)
    if not np.isfinite(found).all():
        return np.zeros(size), 0.0
    return found, max(0.0, float(solver.result.z_u[0]))

"""The client problem restricted to a working set, solved in its dual as a small dense quadratic programme.

With G = sum_i (piece of row i) + sum_c theta_c (e_j - e_k) u_c^T, the model is M = C - G/(N rho); the unknowns are the
weights of the extra pieces (convex combinations in each row) and of the cuts, whose total is bounded by the budget
N r - kappa (weight of the flipped pieces), the stationarity condition in lam >= 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import piqp

from fedhedge.dro.problem import Floats, Problem
from fedhedge.dro.working_set import Cuts, Point, WorkingSet, finite_cost

# Curvature grows without limit as a pair of rows collapses; beyond this many times N rho it only costs digits.
_STIFFEST = 1e6


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
    cost = finite_cost(problem)
    base_signs, base_constant, base_flip = base.signs(classes), base.constants(), base.flips(problem.y)
    fixed = base_signs.T @ problem.X
    signs = np.concatenate([extra.signs(classes) - base_signs[extra.row], cuts.signs(classes)])
    vectors = np.concatenate([problem.X[extra.row], cuts.direction])
    constants = np.concatenate([extra.constants() - base_constant[extra.row], np.zeros(len(cuts.first))])
    charges = np.concatenate([cost * (extra.flips(problem.y) - base_flip[extra.row]), np.ones(len(cuts.first))])
    budget = rows * problem.radius - cost * float(base_flip.sum())

    metric = _Metric(rows * rho, signs, vectors, np.concatenate([np.zeros(len(extra.row)), cuts.curvature]))
    target = rows * rho * center - fixed
    linear = ((signs @ metric.solve(target)) * vectors).sum(1) + constants
    # Rounding may leave a budget that the cheapest pieces exceed by a hair.
    cheapest = np.zeros(rows)
    np.minimum.at(cheapest, extra.row, charges[: len(extra.row)])
    weights, lam = _maximise(metric.gram, linear, extra.row, charges, max(budget, float(cheapest.sum())))

    # Rounding must not spoil the lower bound: weights are made feasible, or what is not is reported.
    count = len(extra.row)
    total = np.bincount(extra.row, weights[:count], minlength=rows)
    weights[:count] /= np.maximum(total, 1.0)[extra.row]
    left = budget - float(charges[:count] @ weights[:count])
    if weights[count:].sum() > max(0.0, left):
        weights[count:] *= max(0.0, left) / weights[count:].sum()

    weighted = signs * weights[:, None]
    coef = metric.solve(target - weighted.T @ vectors)
    pull = fixed + weighted[:count].T @ vectors[:count] + _cut_pull(cuts, weights[count:], coef)
    constant = (float(base_constant.sum()) + float((constants * weights).sum())) / rows
    point = Point(coef, lam, weights[:count], weights[count:])
    return ReducedSolution(point, pull / rows, constant, max(0.0, -left) / rows)


def _cut_pull(cuts: Cuts, weights: Floats, coef: Floats) -> Floats:
    """Sum over pairs of (e_j - e_k) v^T, with v the force of the pair's cuts and curvature and ||v|| <= their weight."""
    signs = cuts.signs(len(coef))
    force = weights[:, None] * cuts.direction
    curved = np.flatnonzero(cuts.curvature > 0.0)
    if len(curved):
        direction = cuts.direction[curved]
        difference = coef[cuts.first[curved]] - coef[cuts.second[curved]]
        across = difference - (difference * direction).sum(1, keepdims=True) * direction
        force[curved] += cuts.curvature[curved, None] * across
        pair = np.unique(cuts.first * len(coef) + cuts.second, return_inverse=True)[1]
        together = np.zeros((int(pair.max()) + 1, force.shape[1]))
        np.add.at(together, pair, force)
        size = np.sqrt((together * together).sum(1))
        allowed = np.bincount(pair, weights)
        force *= np.where(size > allowed, allowed / np.where(size > 0.0, size, 1.0), 1.0)[pair, None]
    result: Floats = signs.T @ force
    return result


def _maximise(
    gram: Floats, linear: Floats, group: np.ndarray[tuple[int], np.dtype[np.intp]], charges: Floats, budget: float
) -> tuple[Floats, float]:
    """Maximise linear.w - w.gram.w / 2 over w >= 0, sums of at most 1 in each group, charges.w <= budget.

    Variables beyond the length of `group` are in no group. Returns w and the multiplier of the budget, which is lam.
    """
    size = len(linear)
    if size == 0:
        return np.zeros(0), 0.0
    members = np.bincount(group)
    shared = np.flatnonzero(members > 1)
    constraints = np.zeros((1 + len(shared), size), order="F")
    constraints[0] = charges
    position = np.zeros(len(members), dtype=np.intp)
    position[shared] = 1 + np.arange(len(shared))
    inside = np.flatnonzero(position[group])
    constraints[position[group[inside]], inside] = 1.0
    upper = np.ones(size)
    upper[len(group) :] = np.inf
    solver = piqp.DenseSolver()
    settings = solver.settings
    settings.eps_abs, settings.eps_rel = 1e-9, 0.0
    settings.eps_duality_gap_abs, settings.eps_duality_gap_rel = 1e-8, 0.0
    settings.max_iter = 50
    limits = np.append(budget, np.ones(len(shared)))
    solver.setup(np.asfortranarray(gram), -linear, None, None, constraints, None, limits, np.zeros(size), upper)
    # Whatever the solver says of its own success, the caller certifies the result by itself.
    solver.solve()
    return np.clip(solver.result.x, 0.0, upper), max(0.0, float(solver.result.z_u[0]))

"""The bundle method that solves the client problem: reduced problems, and bounds that tell when to stop.

Source: proximal bundle method of Kiwiel (1990), with as many pieces as the problem has active ones instead of a single
model, so that a reduced problem whose pieces are the right ones is solved by one quadratic programme.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedhedge.dro import worst_case
from fedhedge.dro.norms import DUAL, dual_norm, phi
from fedhedge.dro.problem import Floats, Problem
from fedhedge.dro.reduced_qp import ReducedSolution, solve_reduced
from fedhedge.dro.working_set import WorkingSet, evaluate, next_set

_PASSES = 200
# Passes spent on the stationarity residual, which a gap bounds by its square root only, once the gap is closed.
_POLISHING_PASSES = 2
# Passes in a row without any gain, after which rounding is all that is left of the gap.
_IDLE_PASSES = 10
# Passes in a row without any gain after which a proximal term that is not part of the problem moves on.
_STALE_PASSES = 3
# The weight of that term: where it starts, how it changes, and its range.
_WEIGHT, _FACTOR, _LIGHTEST, _HEAVIEST = 1e-2, 10.0, 1e-9, 1.0


@dataclass
class Found:
    """Best model with its objective `upper`; best lower bound, and the subgradient `pull` [K, P] behind it."""

    coef: Floats
    upper: float
    lower: float
    pull: Floats
    passes: int
    working_set: WorkingSet

    @property
    def gap(self) -> float:
        """Objective minus lower bound."""
        return self.upper - self.lower

    def residual(self, center: Floats, rho: float) -> float:
        """Largest entry of the stationarity residual rho (M - C) + pull."""
        return float(np.abs(rho * (self.coef - center) + self.pull).max())


def minimise(problem: Problem, center: Floats, rho: float, working_set: WorkingSet, tolerance: float) -> Found:
    """Minimise worst-case risk + rho/2 ||M - C||^2 until the gap is at most tolerance max(1, objective).

    Then a few more passes bring the stationarity residual down to that, if they can.

    With `rho` 0 each reduced problem gets a proximal term that follows the model and is not part of the objective.
    """
    # The model with equal rows, where all norms have their kink, is met exactly or not at all.
    equal = np.tile(center.mean(0), (len(center), 1))
    start = worst_case.evaluate(equal, problem).value + penalty(equal, center, rho)
    found = Found(equal, start, -math.inf, np.zeros_like(center), 0, working_set)
    weight = rho or _WEIGHT
    closed = idle = 0
    proximal_best = -math.inf
    while found.passes < _PASSES:
        found.passes += 1
        solution = solve_reduced(problem, center, weight, found.working_set)
        coef = solution.point.coef
        truth = evaluate(coef, problem)
        risk = worst_case.dual_value(truth.pieces, float(truth.pairs.norms.max()), problem).value
        objective = risk + penalty(coef, center, rho)
        improved = objective < found.upper
        if improved:
            found.coef, found.upper = coef, objective
        constant = _constant(solution, problem, found.upper)
        proximal = _proximal_bound(solution.pull, constant, center, weight)
        lower = proximal if rho > 0.0 else _plain_bound(solution.pull, constant, problem, found)
        if lower > found.lower:
            found.lower, found.pull = lower, solution.pull
        idle = 0 if improved or proximal > proximal_best else idle + 1
        proximal_best = max(proximal_best, proximal)
        allowed = tolerance * max(1.0, found.upper)
        closed += found.gap <= allowed
        polished = found.residual(center, rho) <= allowed or closed > _POLISHING_PASSES
        done = (closed > 0 and polished) or (rho > 0.0 and idle == _IDLE_PASSES)
        # Without a gain nothing is dropped, or a degenerate problem could go round in circles.
        found.working_set = next_set(
            problem, found.working_set, solution.point, None if done else truth, trim=done or idle == 0
        )
        if done:
            break
        if rho > 0.0:
            continue
        # A serious step: the reduced problem is solved as closely as the step is long.
        if risk - proximal <= 0.0 or idle >= _STALE_PASSES:
            error = risk - constant - float((solution.pull * coef).sum())
            short = risk - lower > 2.0 * error
            weight = min(max(weight / _FACTOR if short else weight * _FACTOR, _LIGHTEST), _HEAVIEST)
            center, proximal_best = coef, -math.inf
    return found


def penalty(coef: Floats, center: Floats, rho: float) -> float:
    """rho/2 ||M - C||_F^2."""
    return 0.5 * rho * float(((coef - center) ** 2).sum())


def _constant(solution: ReducedSolution, problem: Problem, upper: float) -> float:
    """Constant of the bound constant + <pull, M> on the risk; a better point has lam <= upper / r."""
    if solution.excess == 0.0:
        return solution.constant
    return solution.constant - solution.excess * upper / problem.radius


def _proximal_bound(pull: Floats, constant: float, center: Floats, rho: float) -> float:
    """Minimum over M of constant + <pull, M> + rho/2 ||M - C||^2."""
    return constant + float((pull * center).sum() - (pull * pull).sum() / (2.0 * rho))


def _plain_bound(pull: Floats, constant: float, problem: Problem, found: Found) -> float:
    """Lower bound of constant + <pull, M> over models that may be better than the one found.

    These have phi(M) <= upper / r, and the rows of `pull` sum to zero, so that <pull, M> >= -phi(M) sum_k ||pull_k||.
    Without a radius, models of ten times the slope found, and at least 10, are taken into account.
    """
    if problem.radius > 0.0:
        slope = found.upper / problem.radius
    else:
        slope = 10.0 * max(1.0, float(phi(found.coef, problem.norm)))
    return constant - slope * float(dual_norm(DUAL[problem.norm], pull).sum())

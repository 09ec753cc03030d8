"""Exact solution of one client's robust problem, certified by a lower bound."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from fedhedge import checks
from fedhedge.dro import worst_case
from fedhedge.dro.norms import DUAL, dual_norm
from fedhedge.dro.problem import Floats, Problem, matrix
from fedhedge.dro.reduced_qp import solve_reduced
from fedhedge.dro.start import smoothed_start
from fedhedge.dro.working_set import WorkingSet, evaluate, next_set

_PASSES = 200
# Passes in a row without any gain, after which rounding is all that is left of the gap.
_IDLE_PASSES = 10
# Weight of the first proximal step for a problem without a proximal term.
_FIRST_WEIGHT = 1e-2


@dataclass(frozen=True)
class Warm:
    """What a solution leaves for the next one with the same rows and settings: its model and its working set."""

    settings: tuple[object, ...]
    coef: Floats
    working_set: WorkingSet


@dataclass(frozen=True)
class ClientSolution:
    """Solution that unpacks as `coef, lam, objective`.

    `coef` [K, P]; `lam` >= phi(coef); `objective` includes the proximal term; `gap` >= 0 is the objective minus a
    lower bound of the optimum; `kkt` is the largest entry of the stationarity residual in the model, or `gap` (the
    sum of all complementarity residuals) where that is larger; `iterations` counts reduced problems; `warm` starts
    the next solve.
    """

    coef: Floats
    lam: float
    objective: float
    gap: float
    kkt: float
    iterations: int
    warm: Warm

    def __iter__(self) -> Iterator[Any]:
        return iter((self.coef, self.lam, self.objective))


class _Bound(NamedTuple):
    """A lower bound of the optimum and its reason: risk >= constant + <pull, M> for every model M."""

    value: float
    pull: Floats


@dataclass(frozen=True)
class _Found:
    """Best model with its objective, best lower bound, and what the search leaves behind."""

    coef: Floats
    upper: float
    bound: _Bound
    passes: int
    working_set: WorkingSet


def solve_client(
    X: Any,
    y: Any,
    radius: float,
    label_cost: float,
    norm: str,
    center: Any = None,
    rho: float = 0.0,
    *,
    classes: int | None = None,
    tolerance: float = 1e-8,
    warm: Warm | None = None,
) -> ClientSolution:
    """Minimise the worst-case risk of a linear model plus rho/2 ||M - center||_F^2, exactly.

    min over M and lam >= phi(M) of r lam + (1/N) sum_i h_i(M, lam) + rho/2 ||M - C||_F^2, with h_i the robust
    Crammer-Singer loss of `robust_loss`. The optimal value is unique; with `rho` 0 the model need not be.

    `X` [N, P]; `y` [N], class indices below `classes` (by default the rows of `center`, or the largest label plus 1);
    `center` [K, P], zero by default. The solve stops when objective minus lower bound is at most `tolerance` times
    max(1, objective). The bound holds for every M, except that with `radius` and `rho` both 0 it holds for every M
    whose phi is at most 10 max(1, phi(coef)). `warm` is the `warm` of an earlier solution for the same rows
    and settings, whatever its center and rho.

    Raises InvalidInput on values that cannot be used; warns with RuntimeWarning when the tolerance is not reached.
    Source: the client step of consensus ADMM (Boyd et al. 2011, Section 7.1) for the dual in `worst_case_risk`; the
    method keeps the active affine pieces (a bundle method, Kiwiel 1990) and solves small quadratic programmes.
    """
    rho = checks.number("rho", rho, low=0.0)
    tolerance = checks.number("tolerance", tolerance, above=0.0)
    if center is not None:
        center = matrix("center", center)
    problem = Problem.checked(X, y, radius, label_cost, norm, _classes(y, center, classes))
    shape = (problem.classes, problem.X.shape[1])
    if center is None:
        center = np.zeros(shape)
    elif center.shape != shape:
        raise checks.InvalidInput("center", f"an array of shape {center.shape}", f"an array of shape {shape}")
    settings = (problem.X.shape, problem.classes, problem.radius, problem.label_cost, problem.norm)
    if warm is not None and warm.settings != settings:
        raise checks.InvalidInput("warm", warm.settings, f"the state of a problem with settings {settings}")

    # Without a budget no label is flipped, unless flips are free.
    free = problem.radius > 0.0 or problem.label_cost == 0.0
    reduced = problem if free else dataclasses.replace(problem, label_cost=math.inf)
    if warm is None:
        start = smoothed_start(reduced, center, rho)
        warm = Warm(settings, start.coef, start.working_set)
    first = center if rho > 0.0 else warm.coef - warm.coef.mean(0)
    found = _bundle(reduced, first, rho, warm.working_set, tolerance)
    value, lam = worst_case.evaluate(found.coef, problem)
    objective = value + _penalty(found.coef, center, rho)
    gap = max(0.0, objective - found.bound.value)
    kkt = max(gap, float(np.abs(rho * (found.coef - center) + found.bound.pull).max()))
    if gap > tolerance * max(1.0, objective):
        warnings.warn(f"the client problem stopped at a gap of {gap:.1e}", RuntimeWarning, stacklevel=2)
    return ClientSolution(
        found.coef, lam, objective, gap, kkt, found.passes, Warm(settings, found.coef, found.working_set)
    )


def _classes(y: Any, center: Floats | None, classes: int | None) -> int:
    if center is not None and classes is not None and classes != len(center):
        raise checks.InvalidInput("classes", classes, f"the number of rows of center, {len(center)}")
    if center is not None:
        return len(center)
    if classes is not None:
        return classes
    known = np.asarray(y)
    return max(2, int(known.max()) + 1) if known.size and known.dtype.kind in "iu" else 2


def _bundle(problem: Problem, center: Floats, rho: float, working_set: WorkingSet, tolerance: float) -> _Found:
    """Solve reduced problems and add what they miss until upper and lower bound meet.

    Without a proximal term of its own the problem gets one that follows the model (the proximal bundle method).
    """
    moving = rho == 0.0
    weight = _FIRST_WEIGHT if moving else rho
    bound = _Bound(-math.inf, center)
    # The model with equal rows, where all norms have their kink, is met exactly or not at all.
    coef = np.broadcast_to(center.mean(0), center.shape)
    upper = worst_case.evaluate(coef, problem).value + _penalty(coef, center, rho)
    idle, highest = 0, -math.inf
    for passes in range(1, _PASSES + 1):  # noqa: B007
        solution = solve_reduced(problem, center, weight, working_set)
        point, pull = solution.point, solution.pull
        truth = evaluate(point.coef, problem)
        risk, lam = worst_case.dual_value(truth.pieces, float(truth.norms.max()), problem)
        value = risk + _penalty(point.coef, center, rho)
        improved = value < upper
        if improved:
            coef, upper = point.coef, value
        # A better point has lam <= upper / r.
        constant = solution.constant
        if solution.excess > 0.0:
            constant -= solution.excess * upper / problem.radius
        # constant + <pull, M> + weight/2 ||M - C||^2 is least at C - pull/weight.
        proximal_bound = constant + float((pull * center).sum() - (pull * pull).sum() / (2.0 * weight))
        lower = proximal_bound
        if moving:
            # A better model has phi(M) <= upper / r, and the pull's rows sum to zero over classes, so that
            # <pull, M> >= -phi(M) sum_k ||pull_k||.
            limit = upper / problem.radius if problem.radius > 0.0 else 10.0 * max(1.0, lam)
            lower = constant - limit * float(dual_norm(DUAL[problem.norm], pull).sum())
        bound = max(bound, _Bound(lower, pull), key=attrgetter("value"))
        idle = 0 if improved or proximal_bound > highest else idle + 1
        highest = max(highest, proximal_bound)
        done = upper - bound.value <= tolerance * max(1.0, upper) or idle == _IDLE_PASSES
        working_set = next_set(problem, working_set, point, truth, grow=not done)
        if done:
            break
        if moving:
            moved = _penalty(point.coef, center, weight)
            if risk + moved - proximal_bound <= moved or idle > 2:
                error = risk - constant - float((pull * point.coef).sum())
                center, highest = point.coef, -math.inf
                weight *= 0.1 if risk - lower > 2.0 * error else 10.0
                weight = min(max(weight, 1e-5), 1.0)
    return _Found(coef, upper, bound, passes, working_set)


def _penalty(coef: Floats, center: Floats, rho: float) -> float:
    return 0.5 * rho * float(((coef - center) ** 2).sum())

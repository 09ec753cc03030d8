"""Exact solution of one client's robust problem, certified by a lower bound."""

from __future__ import annotations

import dataclasses
import functools
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from fedhedge import checks
from fedhedge.dro import worst_case
from fedhedge.dro.bundle import minimise, penalty
from fedhedge.dro.problem import Floats, Problem, matrix
from fedhedge.dro.start import smoothed_start, start_at


@dataclass(frozen=True)
class ClientSolution:
    """Solution that unpacks as `coef, lam, objective`.

    `coef` [K, P]; `lam` >= phi(coef); `objective` includes the proximal term; `gap` >= 0 is the objective minus a
    lower bound of the optimum; `kkt` is the largest entry of the stationarity residual in the model, or `gap` (the
    sum of all complementarity residuals) where that is larger; `iterations` counts reduced problems.
    """

    coef: Floats
    lam: float
    objective: float
    gap: float
    kkt: float
    iterations: int

    def __iter__(self) -> Iterator[Any]:
        return iter((self.coef, self.lam, self.objective))


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
    start: Any = None,
) -> ClientSolution:
    """Minimise the worst-case risk of a linear model plus rho/2 ||M - center||_F^2, exactly.

    min over M and lam >= phi(M) of r lam + (1/N) sum_i h_i(M, lam) + rho/2 ||M - C||_F^2, with h_i the robust
    Crammer-Singer loss of `robust_loss`. The optimal value is unique; with `rho` 0 the model need not be.

    `X` [N, P]; `y` [N], class indices below `classes` (by default the rows of `center`, or the largest label plus 1);
    `center` [K, P], zero by default. The solve stops when objective minus lower bound is at most `tolerance` times
    max(1, objective). The bound holds for every M, except that with `radius` and `rho` both 0 it holds for every M
    whose phi is at most 10 max(1, phi(coef)). `start` [K, P], a model near the solution, such as the one for another
    center, saves most of the time and changes nothing else; with `rho` 0 it is not used, since the solution it is near
    to need not be the only one.

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
    if center is not None and center.shape != shape:
        raise checks.InvalidInput("center", f"an array of shape {center.shape}", f"an array of shape {shape}")
    if center is None or rho == 0.0:
        center = np.zeros(shape)
    if start is not None and (start := matrix("start", start)).shape != shape:
        raise checks.InvalidInput("start", f"an array of shape {start.shape}", f"an array of shape {shape}")

    # Without a budget no label is flipped, unless flips are free.
    free = problem.radius > 0.0 or problem.label_cost == 0.0
    reduced = problem if free else dataclasses.replace(problem, label_cost=math.inf)
    # Products as small as these leave BLAS threads nothing to do but spin, and their number must not change a bit.
    with _threads().limit(limits=1, user_api="blas"):
        begun = start_at(reduced, start, rho) if start is not None and rho > 0.0 else None
        begun = begun or smoothed_start(reduced, center, rho)
        first = center if rho > 0.0 else begun.coef - begun.coef.mean(0)
        found = minimise(reduced, first, rho, begun.working_set, tolerance)
    value, lam = worst_case.evaluate(found.coef, problem)
    objective = value + penalty(found.coef, center, rho)
    gap = float(np.maximum(0.0, objective - found.lower))
    kkt = max(gap, found.residual(center, rho))
    # A gap that is not a number is no proof either.
    if not gap <= tolerance * max(1.0, objective):
        warnings.warn(f"the client problem stopped at a gap of {gap:.1e}", RuntimeWarning, stacklevel=2)
    return ClientSolution(found.coef, lam, objective, gap, kkt, found.passes)


@functools.cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


def _classes(y: Any, center: Floats | None, classes: int | None) -> int:
    if center is not None and classes is not None and classes != len(center):
        raise checks.InvalidInput("classes", classes, f"the number of rows of center, {len(center)}")
    if center is not None:
        return len(center)
    if classes is not None:
        return classes
    known = np.asarray(y)
    return max(2, int(known.max()) + 1) if known.size and known.dtype.kind in "iu" else 2

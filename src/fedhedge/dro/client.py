"""Exact solution of one client's robust problem, certified by a lower bound."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedhedge import checks
from fedhedge.dro import worst_case
from fedhedge.dro.norms import dual_norm
from fedhedge.dro.problem import Floats, Problem, matrix
from fedhedge.dro.reduced_qp import ReducedSolution, solve_reduced
from fedhedge.dro.start import smoothed_start
from fedhedge.dro.working_set import WorkingSet, evaluate, next_set

_PASSES = 200
# Weights of the proximal steps that solve the problem without a proximal term, the last one repeated.
_PROXIMAL = (1e-2, 1e-3)
_PROXIMAL_STEPS = 50


@dataclass(frozen=True)
class Warm:
    """What one solution leaves for the next on the same rows and settings: its model and its working set."""

    problem: tuple[object, ...]
    coef: Floats
    working_set: WorkingSet


@dataclass(frozen=True)
class ClientSolution:
    """Solution that unpacks as `coef, lam, objective`.

    `coef` [K, P]; `lam` >= phi(coef); `objective` includes the proximal term; `gap` >= 0 is objective minus a lower
    bound of the optimum; `kkt` is the largest entry of the stationarity residual in the model, or `gap` (which sums
    all complementarity residuals) where that is larger; `iterations` counts reduced problems; `warm` starts the next.
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

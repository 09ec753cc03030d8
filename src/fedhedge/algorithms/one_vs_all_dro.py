"""One-vs-all DRO: one binary robust problem for each class."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from fedhedge import dro
from fedhedge.algorithms.base import traced
from fedhedge.algorithms.dro_admm import DroAdmm, Floats, Solved


@traced
@dataclasses.dataclass(frozen=True, kw_only=True)
class OneVsAllDro(DroAdmm):
    """Exact consensus ADMM for K binary robust problems, each class against all others; predicts argmax_k w_k.x.

    Row k of the model is w_k, and with s_i = 1 where y_i = k, else -1, the sum over k of
    F_k(w) = min over lam >= ||w||_* of r lam + (1/N) sum_i max(hinge(s_i w.x_i), hinge(-s_i w.x_i) - kappa lam)
    is minimised, hinge(a) = max(0, 1 - a). With two rows m_1 = w/2 and m_2 = -w/2 this is the problem of `DroAdmm` for
    K = 2, whose phi is ||m_1 - m_2||_* = ||w||_*, and (rho/2) ||w - c||^2 is its proximal term at twice the rho.
    Arguments, consensus, residuals and stopping: see `DroAdmm`. The risk observed is the sum over classes.
    Source: the second paper's one-vs-all baseline; its binary problem: Ibrahim et al. 2024 (arXiv 2410.03877).
    """

    name: ClassVar[str] = "OneVsAllDro"

    def solve(
        self, X: Floats, y: Any, radius: float, center: Floats, rho: float, start: Floats | None = None
    ) -> Solved:
        model, risk, gap = np.empty_like(center), 0.0, 0.0
        terms = radius, self.label_cost, self.norm
        for k, row in enumerate(center):
            two_rows = _in_two_rows(row)
            first = None if start is None else _in_two_rows(start[k])
            found = dro.solve_client(X, (y != k).astype(int), *terms, two_rows, 2.0 * rho, start=first)
            model[k] = found.coef[0] - found.coef[1]
            risk += found.objective - rho * float(((found.coef - two_rows) ** 2).sum())
            gap += found.gap
        return Solved(model, risk, gap)


def _in_two_rows(row: Floats) -> Floats:
    """m_1 = w/2 and m_2 = -w/2."""
    return np.stack([row, -row]) / 2.0

"""Wasserstein distributionally robust multiclass classification: loss, worst case, exact client solver."""

from __future__ import annotations

from fedhedge.dro.client import ClientSolution, solve_client
from fedhedge.dro.loss import RobustLoss, crammer_singer_loss, risk_subgradient, robust_loss
from fedhedge.dro.norms import NORMS, dual_norm, phi, phi_subgradient, steepest_direction
from fedhedge.dro.worst_case import Distribution, WorstCase, worst_case_distribution, worst_case_risk

__all__ = [
    "NORMS",
    "ClientSolution",
    "Distribution",
    "RobustLoss",
    "WorstCase",
    "crammer_singer_loss",
    "dual_norm",
    "phi",
    "phi_subgradient",
    "risk_subgradient",
    "robust_loss",
    "solve_client",
    "steepest_direction",
    "worst_case_distribution",
    "worst_case_risk",
]

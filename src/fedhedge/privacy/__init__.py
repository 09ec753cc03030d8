"""Differential privacy of each client's rows: mechanisms, calibration, accounting, ledger, plan, statement, audit.

Everywhere here two tables of a client are neighbours when one row (features and label) is replaced by another; the
number of rows is public; the unit protected is one row of one client; rows belong to one client each, so a guarantee
is each client's own. `mu` is sensitivity / sigma of Gaussian noise, the parameter of Gaussian differential privacy.
"""

from __future__ import annotations

from fedhedge.privacy.audit import Audit, audit
from fedhedge.privacy.bounds import EstimatedBounds, histogram_sensitivity
from fedhedge.privacy.budget import Privacy, check_delta
from fedhedge.privacy.calibration import NoiseMultipliers, calibrate, spent
from fedhedge.privacy.composition import moments_epsilon, moments_mu, run_mu
from fedhedge.privacy.gaussian import (
    analytic_sigma,
    classic_epsilon,
    classic_mu,
    classic_sigma,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
)
from fedhedge.privacy.ledger import BudgetExceeded, Event, Ledger
from fedhedge.privacy.ledger_file import LedgerBusy, LedgerDamaged
from fedhedge.privacy.noise import NoiseSource, SeededNoise
from fedhedge.privacy.plan import Plan, plan
from fedhedge.privacy.sensitivity import (
    Witness,
    gradient_sensitivity,
    lambda_sensitivity,
    model_sensitivity,
    witness,
)
from fedhedge.privacy.statement import Release, Statement

__all__ = [
    "Audit",
    "BudgetExceeded",
    "EstimatedBounds",
    "Event",
    "Ledger",
    "LedgerBusy",
    "LedgerDamaged",
    "NoiseMultipliers",
    "NoiseSource",
    "Plan",
    "Privacy",
    "Release",
    "SeededNoise",
    "Statement",
    "Witness",
    "analytic_sigma",
    "audit",
    "calibrate",
    "check_delta",
    "classic_epsilon",
    "classic_mu",
    "classic_sigma",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "gradient_sensitivity",
    "histogram_sensitivity",
    "lambda_sensitivity",
    "model_sensitivity",
    "moments_epsilon",
    "moments_mu",
    "plan",
    "run_mu",
    "spent",
    "witness",
]

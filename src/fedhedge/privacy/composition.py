"""Composition of all of a client's Gaussian releases into one guarantee for the run.

Neighbouring tables: one row of one client is replaced by another; the client's number of rows is public. Rows live
at one client each, so the guarantee of a run is each client's own and is not multiplied by the number of clients.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from fedhedge import checks
from fedhedge.privacy.gaussian import check_delta_value, check_epsilon, check_mu


def run_mu(rounds: int, mus: Iterable[float]) -> float:
    """Gaussian-privacy parameter of `rounds` rounds, each with one release per entry of `mus` (mu = sensitivity/sigma).

    mu_tot^2 = rounds * sum_j mu_j^2, exact also when each release depends on those before it. The whole run is then
    as private as one Gaussian release of mu_tot: see `gaussian_epsilon` and `gaussian_delta`.

    Source: Dong, Roth and Su 2019 (arXiv 1905.02383), Corollary 3.3.
    """
    rounds = checks.integer("rounds", rounds, low=0)
    return math.sqrt(rounds) * math.hypot(*(checks.number("mu", mu, low=0) for mu in mus))


def moments_epsilon(delta: float, mu: float) -> float:
    """Epsilon at delta by the moments accountant, as DP-Fed DRO states its total; never below the exact epsilon.

    epsilon_bar = A + 2 sqrt(A ln(1/delta)) with A = mu_tot^2 / 2. With the paper's noise, sigma = sensitivity
    sqrt(2 ln(1.25/delta)) / epsilon_j for each mechanism j, this is
    A = (T/4) (epsilon_M^2 / ln(1.25/delta_M) + epsilon_lambda^2 / ln(1.25/delta_lambda)).
    The paper's totals (3.7299 and 2.2421) come out with delta_M = delta_lambda = delta_bar = delta: delta is *not*
    split. That is sound because A depends on the noise alone, so that delta_M and delta_lambda cancel and
    only delta_bar is claimed; it holds for any noise, also where the classic per-round claim (epsilon < 1) does not.

    Source: Abadi et al. 2016 (arXiv 1607.00133), Theorem 2 without sampling; equal to the conversion from
    concentrated privacy, Bun and Steinke 2016 (arXiv 1605.02065), Proposition 1.3.
    """
    mu = check_mu(mu)
    # 2 sqrt(A ln(1/delta)) = mu sqrt(2 ln(1/delta)): a small mu is not squared.
    return mu**2 / 2 + mu * math.sqrt(-2 * math.log(check_delta_value(delta)))


def moments_mu(epsilon: float, delta: float) -> float:
    """Largest mu_tot that `moments_epsilon` accepts at (epsilon, delta).

    sqrt(A) = sqrt(ln(1/delta) + epsilon) - sqrt(ln(1/delta)) and mu_tot = sqrt(2 A).
    """
    epsilon = check_epsilon(epsilon)
    log_term = -math.log(check_delta_value(delta))
    # The difference of roots written as a quotient, so that a small epsilon does not cancel.
    return math.sqrt(2) * epsilon / (math.sqrt(log_term + epsilon) + math.sqrt(log_term))

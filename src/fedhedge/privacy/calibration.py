"""From a budget to each round's noise, and back from the noise to what a run has spent.

Neighbouring tables: one row of one client is replaced by another; the client's number of rows is public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from fedhedge import checks
from fedhedge.privacy.budget import Privacy
from fedhedge.privacy.composition import moments_epsilon, moments_mu, run_mu
from fedhedge.privacy.gaussian import classic_mu, gaussian_epsilon, gaussian_mu

Accounting = Literal["exact", "paper"]


@dataclass(frozen=True)
class NoiseMultipliers:
    """sigma / sensitivity of each release of one round; no unit.

    model: of the model (or its gradient). lambda_: of the dual variable lambda, None for a method without one.
    Multiply by the sensitivities of `fedhedge.privacy.sensitivity`, which hold for one replaced row.
    """

    model: float
    lambda_: float | None = None

    def __post_init__(self) -> None:
        checks.number("noise.model", self.model, above=0)
        if self.lambda_ is not None:
            checks.number("noise.lambda_", self.lambda_, above=0)

    @property
    def mu(self) -> float:
        """Gaussian-privacy parameter of one whole round: sqrt(1/model^2 + 1/lambda_^2)."""
        return math.hypot(1 / self.model, 0.0 if self.lambda_ is None else 1 / self.lambda_)


def calibrate(
    privacy: Privacy, rounds: int, *, lambda_share: float = 0.0, accounting: Accounting = "exact"
) -> NoiseMultipliers:
    """Least noise with which `rounds` rounds of one client keep to `privacy` (unit: one replaced row of the client).

    mu is the whole round's parameter, mu_M^2 = (1 - lambda_share) mu^2 and mu_lambda^2 = lambda_share mu^2, and a
    multiplier is 1 / mu_j. mu follows from `privacy.per` and `accounting`:

    - "total", "exact": the run is one Gaussian release, mu sqrt(rounds) = gaussian_mu(epsilon, delta);
    - "total", "paper": the moments accountant, mu sqrt(rounds) = moments_mu(epsilon, delta);
    - "round", "exact": each round alone, mu = gaussian_mu(epsilon, delta);
    - "round", "paper": the paper's sigma = sensitivity sqrt(2 ln(1.25/delta)) / epsilon_j with epsilon_M^2 =
      (1 - lambda_share) epsilon^2 and epsilon_lambda^2 = lambda_share epsilon^2, refused for epsilon >= 1.

    lambda_share: part of mu^2 spent on lambda, in [0, 1): 0 for the methods with one release a round (DP-ERM, DP-SGD,
    DRO with trusted labels), 0.05 in the paper for DP-Fed DRO.

    Raises InvalidInput when an argument is outside its range.
    """
    rounds = checks.integer("rounds", rounds, low=1)
    lambda_share = checks.number("lambda_share", lambda_share, low=0, below=1)
    exact = checks.one_of("accounting", accounting, get_args(Accounting)) == "exact"
    if privacy.per == "total":
        whole = gaussian_mu if exact else moments_mu
        mu = whole(privacy.epsilon, privacy.delta) / math.sqrt(rounds)
    else:
        single = gaussian_mu if exact else classic_mu
        mu = single(privacy.epsilon, privacy.delta)
    return NoiseMultipliers(
        model=1 / (mu * math.sqrt(1 - lambda_share)),
        lambda_=1 / (mu * math.sqrt(lambda_share)) if lambda_share > 0 else None,
    )


def spent(noise: NoiseMultipliers, rounds: int, delta: float, *, accounting: Accounting = "exact") -> float:
    """Epsilon at `delta` that `rounds` rounds with this noise cost one client (unit: one replaced row of the client).

    "exact": of the Gaussian composition, sqrt(rounds) mu. "paper": A + 2 sqrt(A ln(1/delta)), A = rounds mu^2 / 2.
    `rounds` counts the rounds in which this client released something.

    Raises InvalidInput when an argument is outside its range.
    """
    epsilon_at = (
        gaussian_epsilon
        if checks.one_of("accounting", accounting, get_args(Accounting)) == "exact"
        else moments_epsilon
    )
    return epsilon_at(delta, run_mu(rounds, [noise.mu]))

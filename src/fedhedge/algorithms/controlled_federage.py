"""FedeRage with SCAFFOLD's correction on the pair (model, tail threshold)."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from fedhedge import checks
from fedhedge.algorithms.base import traced
from fedhedge.algorithms.control_variates import ControlVariates
from fedhedge.algorithms.federage import FedeRage


@traced
@dataclasses.dataclass(frozen=True)
class ControlledFedeRage(ControlVariates, FedeRage):  # type: ignore[misc]  # the mixin wraps its base's states
    """FedeRage whose steps of theta and of beta are both corrected by control variates, as SCAFFOLD's are.

    One local step, with w from f and beta as in FedeRage:
        theta <- Proj_C(theta - eta (w grad f - c_i + c));   beta <- Proj_B(beta - eta_beta ((1 - w) - s_i + s))
    w multiplies the gradient alone: on the corrected gradient it would leave E[w (c - c_i)], which is not 0. The
    controls follow from one upload, the pair's move, as in Scaffold: c_i+ = c_i - c + (theta - theta_i)/(H eta), and
    the same for s_i with beta and eta_beta.
    Fixed point: (1 - gamma) E f + gamma CVaR_alpha(f) under *uniform* client weights, whatever the availability.
    gamma = 0 is Scaffold. step, beta_step > 0; server_step: eta_g of the pair; the rest as in FedeRage.
    Uplink: d + 1 scalars, one more (H_i) where clients' steps differ; downlink: 2 (d + 1) + 1. Client state: d + 1
    scalars, final once its upload was used. Raises InvalidInput for values outside these sets.
    Source: FedeRage (arXiv 2609.21057, Algorithm 2) with Karimireddy et al. 2020 (arXiv 1910.06378, Algorithm 1).
    """

    name: ClassVar[str] = "ControlledFedeRage"
    # Again, because the default of the base class that comes first would win.
    step: float = None  # type: ignore[assignment]  # resolved by the tail: 0.1/kappa

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("beta_step", self.beta_step, above=0.0)

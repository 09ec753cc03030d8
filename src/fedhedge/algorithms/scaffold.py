"""SCAFFOLD: federated averaging with control variates."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from fedhedge.algorithms.base import traced
from fedhedge.algorithms.control_variates import ControlVariates
from fedhedge.algorithms.fedavg import FedAvg


@traced
@dataclasses.dataclass(frozen=True)
class Scaffold(ControlVariates, FedAvg):
    """FedAvg whose local gradients are corrected by the difference of server and client control variates.

    y <- y - eta (g_i(y) - c_i + c);  c_i+ = c_i - c + (x - y)/(H eta)  (option II);
    x <- x + eta_g mean(y_i - x);  c <- c + (|S|/N) [(x - mean y_i)/(H eta) - c].
    The last is the paper's c + (|S|/N) mean(c_i+ - c_i) with c_i+ put in: the same trajectory to rounding, from one
    upload instead of two, and from its mean alone. All controls start at 0, so that c is always the mean of all c_i.
    The fixed point is the unweighted optimum, whatever the availability and the weights of aggregation.
    step: eta > 0. server_step: eta_g. ball: as in FedAvg; where it binds, the move stands for the gradient as in the
    paper. Uplink: d scalars, one more (H_i) where clients' steps differ; downlink: 2 d. Client state: c_i, d scalars,
    final once its upload was used. Raises InvalidInput when a step is not positive.
    Source: Karimireddy et al. 2020 (arXiv 1910.06378), Algorithm 1.
    """

    name: ClassVar[str] = "Scaffold"

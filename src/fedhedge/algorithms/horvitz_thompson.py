"""The Horvitz-Thompson sum of client updates, for a known availability law."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from fedhedge.algorithms.base import traced
from fedhedge.algorithms.inverse_probability import InverseProbability


@traced
@dataclasses.dataclass(frozen=True)
class HorvitzThompson(InverseProbability):
    """x <- x + sum over S of (p_i/pi_i) (y_i - x), whose expectation is the update with everyone, sum p_i (y_i - x).

    pi_i = P(i in S), empty rounds included; p_i: the run's weights over all clients (1/N by default: the fixed point is
    the unweighted optimum, up to drift, whatever the availability). The weights of a round do not sum to one: a rare
    client takes a step 1/(N pi_i) times the plain one, which limits the local step and makes the iterates noisy.
    base: the method of the local work. law: the availability law (an oracle: nobody knows it in the field).
    A client with pi_i = 0 never comes; it is reported. Raises InvalidInput for a base whose weights are its own.
    Source: Horvitz and Thompson 1952; a control in the experiments of Rahimi and Kalogerias 2025 (arXiv 2509.14444).
    """

    name: ClassVar[str] = "HorvitzThompson"
    keeps_sum: ClassVar[bool] = True

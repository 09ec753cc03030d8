"""Weights by inverse inclusion probabilities, for a known availability law."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax

from fedhedge import checks
from fedhedge.algorithms.base import Cohort, Start, Tree, traced
from fedhedge.algorithms.weighting import Reweighting, inverse_inclusion, never_there
from fedhedge.availability.base import Law
from fedhedge.models.base import Functional


@traced
@dataclasses.dataclass(frozen=True)
class InverseProbability(Reweighting):
    """Uploads averaged with w_i proportional to p_i/pi_i over the clients of the round, pi_i = P(i in S).

    p_i: the run's weights over all clients. Dividing by the sum over S keeps a round's step bounded, at a price: the
    expected weight is p_i only if that sum is constant, so the objective lies between that of FedAvg and sum p_i f_i.
    base: the method of the local work. law: the availability law (an oracle: nobody knows it in the field).
    A client with pi_i = 0 never comes; it is reported. Raises InvalidInput for a base whose weights are its own.
    Source: Hajek 1971; a control in the experiments of Rahimi and Kalogerias 2025 (arXiv 2509.14444).
    """

    name: ClassVar[str] = "InverseProbability"
    oracle: ClassVar[bool] = True
    law: Law = dataclasses.field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.instance("law", self.law, Law, "a law of fedhedge.availability, such as FixedSize(size=3)")

    def init_own(self, start: Start) -> Tree:
        return inverse_inclusion(self.law, start.clients)

    def arrived(self, own: Tree, cohort: Cohort) -> jax.Array:
        weights: jax.Array = cohort.mass * own[cohort.clients]
        return weights

    def warnings(self, model: Functional, start: Start, rounds: int, local_steps: int) -> list[str]:
        return super().warnings(model, start, rounds, local_steps) + never_there(self.law, start.clients)

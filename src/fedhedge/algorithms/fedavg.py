"""Federated averaging."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax

from fedhedge.algorithms.base import Tree, traced
from fedhedge.algorithms.first_order import FirstOrder


@traced
@dataclasses.dataclass(frozen=True)
class FedAvg(FirstOrder):
    """Agnostic federated averaging: H local steps of SGD at each client, then the plain mean of the models.

    y_i <- Proj_C(y_i - eta grad f_i(y_i; xi));  x <- mean over S of y_i. Minimises sum_i p_i f_i, where p_i is the
    weight that availability really gives client i (`law.weights()`).
    step: eta. ball: radius of C (None: no projection). Raises InvalidInput for a negative step.
    Source: McMahan et al. 2017 (arXiv 1602.05629); FedeRage paper (arXiv 2609.21057), Algorithm 1, eq. (2), (5), (8).
    """

    name: ClassVar[str] = "FedAvg"

    def direction(self, loss: jax.Array, gradient: Tree, point: Tree, down: Tree, client: Tree) -> Tree:
        return gradient

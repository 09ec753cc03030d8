"""FedProx: federated averaging with a proximal term."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax

from fedhedge import checks
from fedhedge.algorithms.base import Tree, traced
from fedhedge.algorithms.first_order import FirstOrder


@traced
@dataclasses.dataclass(frozen=True)
class FedProx(FirstOrder):
    """FedAvg whose local objective is f_i(y) + (mu/2) ||y - x||^2, x the model that was broadcast.

    y <- y - eta (grad f_i(y; xi) + mu (y - x)). mu = 0 is FedAvg.
    step: eta. mu: weight of the proximal term. ball: as in FedAvg. Raises InvalidInput for negative values.
    Source: Li et al. 2020 (arXiv 1812.06127), eq. (2).
    """

    name: ClassVar[str] = "FedProx"
    mu: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("mu", self.mu, low=0.0)

    def direction(self, loss: jax.Array, gradient: Tree, point: Tree, down: Tree, client: Tree) -> Tree:
        return jax.tree.map(lambda g, y, x: g + self.mu * (y - x), gradient, point, down)

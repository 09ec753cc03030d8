"""Every table and figure that `fedhedge reproduce` knows, by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fedhedge import checks


@dataclass(frozen=True)
class Experiment:
    """One name of `fedhedge reproduce`.

    source: "module:function" in this package, imported on first use; the function takes (out, fast=, quiet=).
    minutes, fast_minutes: on two cores, without anything compiled before.
    """

    title: str
    source: str
    minutes: float
    fast_minutes: float

    def load(self) -> Callable[..., Any]:
        """The function that runs it."""
        module, function = self.source.split(":")
        found: Callable[..., Any] = getattr(importlib.import_module(f"fedhedge.experiments.{module}"), function)
        return found


EXPERIMENTS = {
    "federage-theory": Experiment(
        "FedeRage, Theorems 1 and 2: excess of the averaged pair against the number of rounds",
        "federage_theory:main",
        2,
        0.5,
    ),
    "dro-table": Experiment(
        "DP-Fed DRO, Table 1 and Section 7.1: all methods on five tables and the pump, at one exact budget",
        "dro_table:paper",
        7,
        1,
    ),
    "dro-table-centred": Experiment(
        "The same five tables with features in [-1, 1] instead of [0, 1]", "dro_table:centred", 3, 1
    ),
    "federage-table1-mnist": Experiment(
        "FedeRage, Table I on MNIST, with Figs. 4 (by round), 5 (weights) and 6 (by client), and uplink",
        "federage_table:mnist",
        60,
        1.5,
    ),
    "federage-table1-fashion-mnist": Experiment(
        "The same on FashionMNIST", "federage_table:fashion_mnist", 60, 1.5
    ),
    "federage-table1-cifar10": Experiment("The same on CIFAR-10", "federage_table:cifar10", 3000, 2.5),
    # New entries: one line each below this comment, in the order of the papers.
}


def experiment(name: str) -> Experiment:
    """The experiment of this name; InvalidInput proposes the nearest one."""
    return EXPERIMENTS[checks.one_of("NAME", name, EXPERIMENTS)]

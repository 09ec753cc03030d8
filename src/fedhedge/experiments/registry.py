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
    "federage-table1-mnist": Experiment(
        "FedeRage, Table I on MNIST, with Figs. 4 (by round), 5 (weights) and 6 (by client), and uplink",
        "federage_table:mnist",
        60,
        1,
    ),
    "federage-table1-fashion-mnist": Experiment("The same on FashionMNIST", "federage_table:fashion_mnist", 60, 1),
    "federage-table1-cifar10": Experiment("The same on CIFAR-10", "federage_table:cifar10", 3500, 1.5),
    "federage-fig1": Experiment(
        "FedeRage, Fig. 1: five clusters, two seldom heard: decision regions and accuracy by round",
        "federage_fig1:main",
        3,
        0.5,
    ),
    "federage-fig3": Experiment(
        "FedeRage, Fig. 3: client weights under CVaR, and the size of the mini-batch", "federage_fig3:main", 3, 0.5
    ),
    "federage-sensitivity": Experiment(
        "FedeRage: accuracy and loss over a grid of alpha and gamma, two data sets, two laws",
        "federage_sensitivity:main",
        10,
        0.5,
    ),
    "federage-local-steps": Experiment(
        "FedeRage's gain over FedAvg by local steps and rounds, which the paper leaves open",
        "federage_local_steps:main",
        12,
        0.5,
    ),
    "federage-theory": Experiment(
        "FedeRage, Theorems 1 and 2: excess of the averaged pair against the number of rounds",
        "federage_theory:main",
        2,
        0.5,
    ),
    "dro-table": Experiment(
        "DP-Fed DRO, Table 1 and Section 7.1: all methods on five tables and the pump, at one exact budget",
        "dro_table:paper",
        2,
        1,
    ),
    "dro-table-centred": Experiment(
        "The same five tables with features in [-1, 1] instead of [0, 1]", "dro_table:centred", 3, 0.5
    ),
    "dro-fig1": Experiment(
        "DP-Fed DRO: accuracy against epsilon and delta of a round, at equal exact budgets", "dro_fig1:main", 5, 1.5
    ),
    "dro-fig2": Experiment(
        "DP-Fed DRO: residuals and excess of the robust objective by round", "dro_fig2:main", 3, 0.5
    ),
    "dro-fig3": Experiment("DP-Fed DRO: time to peak accuracy against clients and classes", "dro_fig3:main", 2, 1),
    "dro-correlated": Experiment(
        "DP-Fed DRO, appendix B.4: native multiclass against one-vs-all, overlapping classes",
        "dro_correlated:main",
        3,
        0.5,
    ),
    "which-method": Experiment(
        "Beyond the papers: all methods on three data sets under three laws, benefit and cost",
        "which_method:main",
        45,
        0.5,
    ),
}


# Figures that come with a table, since they are drawn from the same runs.
PARTS = {
    "federage-table1": "federage-table1-fashion-mnist",
    "federage-fig4": "federage-table1-fashion-mnist",
    "federage-fig5": "federage-table1-fashion-mnist",
    "federage-fig6": "federage-table1-fashion-mnist",
    "federage-uplink": "federage-table1-fashion-mnist",
    "dro-table1": "dro-table",
}


def whole(name: str) -> str:
    """The name of the experiment that makes this table or figure; InvalidInput proposes the nearest name."""
    known = [*EXPERIMENTS, *PARTS]
    if name not in known:
        hint = " ".join(filter(None, [checks.nearest(name, known), "--list says what each makes"]))
        raise checks.InvalidInput("NAME", name, ", ".join(known), hint)
    return PARTS.get(name, name)

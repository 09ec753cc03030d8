"""The columns of the second paper's comparison: tables, protocols, and the budget that each has."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from fedhedge.experiments.tables_data import PUMP, TABLES, Problem, problem
from fedhedge.privacy import Privacy, calibrate, spent

# The paper's noise, whose exact total is the budget of every private method: 5 % of each round's mu^2 is for lambda.
PAPER_SHARE = 0.05
SEEDS, FOLDS = tuple(range(10)), 3


@dataclass(frozen=True)
class Setting:
    """One column: a table, how it is scaled, and the paper's noise (epsilon of each round at delta, rounds)."""

    name: str
    table: str
    scaling: str
    metric: str
    rounds: int
    per_round: float
    delta: float = 1e-6

    @functools.cached_property
    def privacy(self) -> Privacy:
        """The exact total of the paper's noise in this setting."""
        noise = calibrate(
            Privacy(self.per_round, self.delta, per="round"),
            self.rounds,
            lambda_share=PAPER_SHARE,
            accounting="paper",
        )
        return Privacy(spent(noise, self.rounds, self.delta), self.delta)

    def problems(self, seeds: Sequence[int], folds: int) -> dict[int, Problem]:
        """The random splits of this column, by seed."""
        return {seed: problem(self.table, seed, folds=folds, scaling=self.scaling) for seed in seeds}


def small_tables(scaling: str) -> tuple[Setting, ...]:
    """Protocol 7.2: macro-F1 after 50 rounds at the paper's epsilon = 0.5 a round."""
    return tuple(Setting(name, name, scaling, "macro-F1", rounds=50, per_round=0.5) for name in TABLES)


def pump() -> tuple[Setting, ...]:
    """Protocol 7.1: accuracy after 150 rounds at the paper's three epsilons a round."""
    budgets = (0.05, 0.1, 0.2)
    return tuple(Setting(f"pump-{e:g}", PUMP, "standard", "accuracy", rounds=150, per_round=e) for e in budgets)

"""What a report is about: runs by method, and the choices that all its tables and figures share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fedhedge import checks
from fedhedge.evaluation import by_client, compare, group, higher_is_better, per_client, primary_metric

if TYPE_CHECKING:
    from fedhedge.simulation import Run

WORST = 3


@dataclass(frozen=True)
class Study:
    """Runs by method (`evaluation.group`), the rare clients, a target for the metric, and what is looked at.

    split: the rows that metrics are of. last: how many of the last evaluations a final number is the mean of.
    """

    groups: dict[str, list[Run]]
    rare: tuple[int, ...] = ()
    target: float | None = None
    split: str = "test"
    last: int = 1

    @classmethod
    def of(
        cls,
        runs: Sequence[Run] | Mapping[str, Sequence[Run]],
        rare: Sequence[int] = (),
        target: float | None = None,
        split: str = "test",
        last: int = 1,
    ) -> Study:
        """Group the runs and check the arguments.

        Raises InvalidInput as `evaluation.compare` does, and when the runs have different numbers of clients.
        """
        study = cls(group(runs), tuple(rare), target, split, last)
        sizes = sorted({len(run.weights) for run in study.runs})
        if len(sizes) > 1:
            raise checks.InvalidInput("clients", sizes, "runs that all have the same number of clients")
        _ = study.table
        return study

    @cached_property
    def table(self) -> pd.DataFrame:
        """The comparison of the methods."""
        return compare(self.groups, self.rare, self.target, split=self.split, last=self.last, worst=WORST)

    @property
    def runs(self) -> list[Run]:
        """All runs, method by method."""
        return [run for members in self.groups.values() for run in members]

    @cached_property
    def metric(self) -> str:
        """Accuracy, or the loss where a model does not predict."""
        return primary_metric(self.runs, self.split)

    @property
    def higher_is_better(self) -> bool:
        """The direction of the metric."""
        return higher_is_better(self.metric)

    @cached_property
    def final(self) -> dict[str, pd.DataFrame]:
        """The metric at the end: for each method a frame of clients (index) by seeds (columns)."""
        return {
            label: pd.DataFrame(
                {run.settings["seed"]: per_client(run, self.metric, self.split, last=self.last) for run in members}
            )
            for label, members in self.groups.items()
        }

    def by_round(self, measure: Callable[[pd.DataFrame], pd.Series], metric: str) -> dict[str, pd.DataFrame]:
        """A number over clients by round: for each method a frame of rounds (index) by runs (columns).

        measure: from values of rounds by clients to one value a round. Rounds that not all runs evaluated are left out.
        """
        return {
            label: pd.concat(
                [measure(by_client(run, metric, self.split)) for run in members],
                axis=1,
                join="inner",
                keys=_seeds(members),
            )
            for label, members in self.groups.items()
        }

    def draws(self) -> dict[tuple[str, ...], list[Run]]:
        """Runs that saw different draws of who gets through, each by one method: labels that share them -> runs."""
        found: list[tuple[list[str], list[Run]]] = []
        for label, members in self.groups.items():
            for labels, seen in found:
                if _same_draws(members, seen):
                    labels.append(label)
                    break
            else:
                found.append(([label], members))
        return {tuple(labels): members for labels, members in found}


def descending(values: np.ndarray) -> np.ndarray:
    """Client numbers from the largest value to the smallest; values equal but for rounding keep their order."""
    return np.argsort(-np.round(values, 9), kind="stable")


def _seeds(runs: Sequence[Run]) -> list[int]:
    return [run.settings["seed"] for run in runs]


def _same_draws(some: Sequence[Run], others: Sequence[Run]) -> bool:
    known = {run.settings["seed"]: run for run in others}
    return all(
        run.settings["seed"] in known
        and run.counts["rounds"] == known[run.settings["seed"]].counts["rounds"]
        and np.array_equal(run.inclusion_probabilities, known[run.settings["seed"]].inclusion_probabilities)
        and np.array_equal(run.participation, known[run.settings["seed"]].participation)
        for run in some
    )

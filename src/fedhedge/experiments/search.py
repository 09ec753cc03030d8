"""Choice of hyper-parameters on validation rows: one group of settings after another, the best kept each time."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from fedhedge import files
from fedhedge.algorithms import Algorithm


@dataclass(frozen=True)
class Candidate:
    """A method with its hyper-parameters, and the number of local steps."""

    algorithm: Algorithm
    local_steps: int

    def settings(self) -> dict[str, Any]:
        """Both as plain values."""
        found: dict[str, Any] = files.plain(self.algorithm.settings() | {"local_steps": self.local_steps})
        return found

    def varied(self, changes: Mapping[str, Any]) -> Candidate:
        """The candidate with some settings changed; `local_steps` is one of them."""
        own = {name: value for name, value in changes.items() if name != "local_steps"}
        return Candidate(
            dataclasses.replace(self.algorithm, **own),  # type: ignore[type-var]
            changes.get("local_steps", self.local_steps),
        )


# From the best candidate so far to those that are tried beside it.
Stage = Callable[[Candidate], Sequence[Candidate]]


def grid(*changes: Mapping[str, Any]) -> Stage:
    """A stage that tries each of these changes."""
    return lambda best: [best.varied(change) for change in changes]


def choose(
    start: Candidate, stages: Sequence[Stage], scores: Callable[[Sequence[Candidate]], Sequence[float]]
) -> tuple[Candidate, pd.DataFrame]:
    """The best candidate after all stages, and a table of all that was tried: stage, score, settings.

    scores: from candidates to numbers, larger is better; each candidate is scored once. A tie goes to the earlier one.
    """
    best, known = start, dict[Candidate, float]()
    lines = []
    for number, stage in enumerate(stages, start=1):
        tried = list(dict.fromkeys([best, *stage(best)]))
        new = [candidate for candidate in tried if candidate not in known]
        known |= dict(zip(new, scores(new), strict=True))
        best = max(tried, key=lambda candidate: known[candidate])
        lines += [{"stage": number, "score": known[one], **one.settings()} for one in tried]
    return best, pd.DataFrame(lines)

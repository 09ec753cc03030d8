"""The methods of the second paper's tables and their candidates, the private ones at one exact total budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedhedge.algorithms import Algorithm, DpDroAdmm, DpErmAdmm, DpSgd, DroAdmm, OneVsAllDro
from fedhedge.experiments.selection import Job, Train, simulated
from fedhedge.experiments.tables_data import Floats
from fedhedge.privacy import Privacy

# Rounds in which the exact methods converge, or nearly so, and the residuals at which they stop before.
EXACT_ROUNDS, EXACT_TOLERANCE = 50, 1e-2
# In units of the scaled features.
RADII = (0.001, 0.003, 0.01, 0.03)

Candidates = Callable[[Privacy, int], tuple[Algorithm, ...]]


@dataclass(frozen=True)
class Method:
    """One line of a table.

    candidates: what cross-validation chooses from, given the budget of the whole run and the number of rounds. One
    candidate is not searched. private: whether it keeps to the budget. final, choosing: how the chosen candidate, and
    those on the folds, are trained; None trains by simulation of all rounds. choice_of: the method, earlier in the
    list, whose choices are taken over.
    """

    name: str
    title: str
    candidates: Candidates
    private: bool = True
    final: Train | None = None
    choosing: Train | None = None
    choice_of: str | None = None


def centralised(jobs: Sequence[Job]) -> list[Floats]:
    """The exact solution on the rows of all clients together, without ADMM; gives models [K, P]."""
    return [_pooled(job) for job in jobs]


def _pooled(job: Job) -> Floats:
    algorithm = job.algorithm
    assert isinstance(algorithm, DroAdmm)
    X, y = job.clients.rows("train")
    nothing = np.zeros((len(job.clients.classes or ()), X.shape[1]))
    return algorithm.solve(X, y, float(algorithm.radius), nothing, 0.0).model  # type: ignore[arg-type]


def _default(*steps: float | None) -> Candidates:
    def candidates(privacy: Privacy, rounds: int) -> tuple[Algorithm, ...]:
        return tuple(DpDroAdmm.calibrated(privacy, rounds, step=step) for step in steps)

    return candidates


def _paper(norm: str) -> Candidates:
    def candidates(privacy: Privacy, rounds: int) -> tuple[Algorithm, ...]:
        settings: dict[str, Any] = {"variant": "paper", "norm": norm, "radius": 0.01}
        return tuple(DpDroAdmm.calibrated(privacy, rounds, step=step, **settings) for step in (0.5, 1.0, 2.0, 4.0))

    return candidates


def _erm(privacy: Privacy, rounds: int) -> tuple[Algorithm, ...]:
    return tuple(DpErmAdmm.calibrated(privacy, rounds, diameter=diameter) for diameter in (4.0, 8.0, 16.0, 32.0))


def _sgd(*steps: float) -> Candidates:
    def candidates(privacy: Privacy, rounds: int) -> tuple[Algorithm, ...]:
        return tuple(DpSgd.calibrated(privacy, rounds, step=step) for step in steps)

    return candidates


def _robust(privacy: Privacy, rounds: int) -> tuple[Algorithm, ...]:
    return tuple(DroAdmm(radius=radius, norm="l1", tolerance=EXACT_TOLERANCE) for radius in RADII)


def _one_vs_all(privacy: Privacy, rounds: int) -> tuple[Algorithm, ...]:
    return tuple(OneVsAllDro(radius=radius, norm="l1", tolerance=EXACT_TOLERANCE) for radius in RADII)


# Steps of the default: of the grids of one, two or three steps between 2 and 32, this one had the best mean over the
# eight columns on seeds 100 to 119, of which no result is reported (so had the averaging of the last rounds).
METHODS = (
    Method("dp-dro", "DP-Fed DRO, default", _default(4.0, 16.0, 32.0)),
    Method("dp-dro-flat", "DP-Fed DRO, default, no search", _default(None)),
    Method("dp-dro-paper-linf", "DP-Fed DRO, paper, linf", _paper("linf")),
    Method("dp-dro-paper-l1", "DP-Fed DRO, paper, l1", _paper("l1")),
    Method("dp-erm", "DP-Fed ERM", _erm),
    Method("dp-sgd-paper", "DP-Fed SGD, paper's steps", _sgd(0.05, 0.1, 0.15, 0.2)),
    Method("dp-sgd", "DP-Fed SGD, steps 1 to 8", _sgd(1.0, 2.0, 4.0, 8.0)),
    Method("central-dro", "centralised DRO", _robust, False, centralised, centralised),
    Method("dro", "Fed DRO, exact", _robust, False, simulated(EXACT_ROUNDS), None, "central-dro"),
    Method("ova-dro", "one-vs-all DRO, exact", _one_vs_all, False, simulated(EXACT_ROUNDS), centralised),
)

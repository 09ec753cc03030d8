"""Training of many candidates on many splits, and the choice among them by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedhedge.algorithms import Algorithm
from fedhedge.availability import FixedSize
from fedhedge.data import Clients
from fedhedge.experiments.tables_data import Problem, Split
from fedhedge.models import CrammerSinger
from fedhedge.simulation.arithmetic import arithmetic
from fedhedge.simulation.driver import Simulation
from fedhedge.simulation.options import Options
from fedhedge.simulation.side_by_side import together

Floats = NDArray[np.float64]
Metric = Callable[[NDArray[np.int32], NDArray[np.int32]], float]
# Folds draw their noise from streams of their own, away from those of the runs that are reported.
FOLD_STREAMS = 100_000


class Job(NamedTuple):
    """One training: a method with its hyper-parameters, the clients, and the seed of the noise."""

    algorithm: Algorithm
    clients: Clients
    seed: int


class Outcome(NamedTuple):
    """What is reported for one seed: the metric on the test rows, the candidate chosen, and each one's mean score."""

    value: float
    chosen: int
    scores: tuple[float, ...]


Train = Callable[[Sequence[Job]], list[Floats]]


def simulated(rounds: int) -> Train:
    """Training by the round loop, everyone in every round, runs of one shape side by side; gives models [K, P]."""

    def train(jobs: Sequence[Job]) -> list[Floats]:
        runs = [_simulation(job, rounds) for job in jobs]
        together(runs)
        return [np.asarray(run.result().params) for run in runs]

    return train


def _simulation(job: Job, rounds: int) -> Simulation:
    options = Options(
        rounds=rounds, local_steps=1, batch_size=None, seed=job.seed, evaluate_every=rounds, evaluate_on=()
    )
    everyone = FixedSize(None, size=len(job.clients))
    with arithmetic(job.algorithm.precision):
        return Simulation(job.algorithm, CrammerSinger(), job.clients, everyone, options)


def cross_validated(
    candidates: Sequence[Algorithm],
    problems: dict[int, Problem],
    metric: Metric,
    train: Train,
    choosing: Train | None = None,
) -> dict[int, Outcome]:
    """For each seed, choose the candidate with the best mean score over the folds, then train it on all rows.

    problems: by seed. choosing: how folds are trained, where that differs from the final training. A tie goes to the
    earlier candidate. Held-out rows of a fold carry the labels that clients have; test rows are not looked at.
    """
    jobs, held_out = [], []
    for seed, problem in problems.items():
        for candidate in candidates:
            for number, fold in enumerate(problem.folds, start=1):
                jobs.append(Job(candidate, fold.clients, number * FOLD_STREAMS + seed))
                held_out.append(fold)
    shape = (len(problems), len(candidates), -1)
    single = len(candidates) == 1
    models = [] if single else (choosing or train)(jobs)
    scores = np.reshape([score(*pair, metric) for pair in zip(models, held_out, strict=True)], shape)
    means = np.zeros(shape[:2]) if single else scores.mean(axis=2)
    best = means.argmax(axis=1)
    final = [
        Job(candidates[k], problem.whole.clients, seed)
        for k, (seed, problem) in zip(best, problems.items(), strict=True)
    ]
    return {
        seed: Outcome(score(model, problem.whole, metric), int(chosen), tuple(map(float, mean)))
        for model, chosen, mean, (seed, problem) in zip(train(final), best, means, problems.items(), strict=True)
    }


def score(model: Floats, split: Split, metric: Metric) -> float:
    """The metric of argmax_k m_k.x on the rows that a split holds out."""
    return metric(split.labels, np.argmax(split.features @ model.T, axis=1).astype(np.int32))


def accuracy(labels: NDArray[np.int32], predicted: NDArray[np.int32]) -> float:
    """Share of rows whose class is predicted."""
    return float(np.mean(labels == predicted))


def macro_f1(labels: NDArray[np.int32], predicted: NDArray[np.int32]) -> float:
    """Mean over classes of 2 TP / (2 TP + FP + FN); a class that is neither there nor predicted does not count."""
    right = np.bincount(labels[labels == predicted], minlength=1 + max(labels.max(), predicted.max()))
    size = len(right)
    total = np.bincount(labels, minlength=size) + np.bincount(predicted, minlength=size)
    return float(np.mean((2.0 * right / np.maximum(total, 1))[total > 0]))

"""Training of many candidates on many splits, and their scores on folds and on test rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from fedhedge.algorithms import Algorithm
from fedhedge.availability import FixedSize
from fedhedge.data import Clients
from fedhedge.experiments.tables_data import Floats, Labels, Problem, Split
from fedhedge.models import CrammerSinger
from fedhedge.simulation.arithmetic import arithmetic
from fedhedge.simulation.driver import Simulation
from fedhedge.simulation.options import Options
from fedhedge.simulation.side_by_side import together

Kind = TypeVar("Kind", bound=Simulation)
Metric = Callable[[Labels, Labels], float]
# Folds draw their noise from streams of their own, away from those of the runs that are reported.
FOLD_STREAMS = 100_000


class Job(NamedTuple):
    """One training: a method with its hyper-parameters, the clients, and the seed of the noise."""

    algorithm: Algorithm
    clients: Clients
    seed: int


Train = Callable[[Sequence[Job]], list[Floats]]


def simulated(rounds: int) -> Train:
    """Training by the round loop, everyone in every round, runs of one shape side by side; gives models [K, P]."""

    def train(jobs: Sequence[Job]) -> list[Floats]:
        runs = [prepared(job, rounds, every=rounds, kind=Simulation) for job in jobs]
        together(runs)
        return [np.asarray(run.result().params) for run in runs]

    return train


def prepared(job: Job, rounds: int, *, every: int, kind: type[Kind]) -> Kind:
    """A run of this job that is not begun, everyone in every round, which stops to evaluate each `every` rounds."""
    options = Options(
        rounds=rounds,
        local_steps=1,
        batch_size=None,
        seed=job.seed,
        evaluate_every=every,
        evaluate_on=(),
        # A candidate that diverges is a bad one, not the end of all runs beside it.
        on_nonfinite="skip",
    )
    everyone = FixedSize(None, size=len(job.clients))
    with arithmetic(job.algorithm.precision):
        return kind(job.algorithm, CrammerSinger(), job.clients, everyone, options)


def fold_scores(
    candidates: Sequence[Algorithm], problems: Mapping[int, Problem], metric: Metric, train: Train
) -> Floats:
    """Mean over the folds of each candidate's score on the rows held out, [seeds, candidates]; problems by seed.

    Held-out rows carry the labels that the clients have; test rows are not looked at.
    """
    jobs, held_out = [], []
    for seed, problem in problems.items():
        for candidate in candidates:
            for number, fold in enumerate(problem.folds, start=1):
                jobs.append(Job(candidate, fold.clients, number * FOLD_STREAMS + seed))
                held_out.append(fold)
    scores = [score(model, fold, metric) for model, fold in zip(train(jobs), held_out, strict=True)]
    means: Floats = np.reshape(scores, (len(problems), len(candidates), -1)).mean(axis=2)
    return means


def final_scores(
    chosen: Sequence[Algorithm], problems: Mapping[int, Problem], metric: Metric, train: Train
) -> list[float]:
    """Score on the test rows of the method chosen for each seed, trained on all of its training rows."""
    pairs = zip(chosen, problems.items(), strict=True)
    models = train([Job(algorithm, problem.whole.clients, seed) for algorithm, (seed, problem) in pairs])
    return [score(model, problem.whole, metric) for model, problem in zip(models, problems.values(), strict=True)]


def score(model: Floats, split: Split, metric: Metric) -> float:
    """The metric of argmax_k m_k.x on the rows that a split holds out."""
    return metric(split.labels, np.argmax(split.features @ model.T, axis=1).astype(np.int32))


def accuracy(labels: Labels, predicted: Labels) -> float:
    """Share of rows whose class is predicted."""
    return float(np.mean(labels == predicted))


def macro_f1(labels: Labels, predicted: Labels) -> float:
    """Mean over classes of 2 TP / (2 TP + FP + FN); a class that is neither there nor predicted does not count."""
    size = 1 + max(int(labels.max()), int(predicted.max()))
    right = np.bincount(labels[labels == predicted], minlength=size)
    both = np.bincount(labels, minlength=size) + np.bincount(predicted, minlength=size)
    return float(np.mean(2.0 * right[both > 0] / both[both > 0]))

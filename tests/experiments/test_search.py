"""Choice of hyper-parameters: against a full enumeration where stages are one grid, and what is asked of the score."""

import itertools

import pytest

import fedhedge as fh
from fedhedge.experiments.federage_methods import METHODS
from fedhedge.experiments.search import Candidate, choose, grid

START = Candidate(fh.algorithms.FedAvg(step=0.5), 5)


def test_one_stage_finds_the_best_of_its_grid_and_the_start():
    values = (0.01, 0.2, 0.9)
    scores = {0.5: 0.3, 0.01: 0.1, 0.2: 0.8, 0.9: 0.2}
    best, table = choose(
        START,
        [grid(*({"step": step} for step in values))],
        lambda tried: [scores[one.algorithm.step] for one in tried],
    )
    assert best.algorithm.step == 0.2
    assert sorted(table["score"]) == sorted(scores.values())


def test_a_second_stage_starts_from_the_best_and_scores_nobody_twice():
    steps, locals_ = (0.1, 0.3), (2, 5, 10)
    seen = []

    def score(tried):
        seen.extend(tried)
        # Separable, so that one coordinate after the other finds the optimum over all pairs.
        return [-abs(one.algorithm.step - 0.1) - abs(one.local_steps - 10) for one in tried]

    stages = [grid(*({"step": s} for s in steps)), grid(*({"local_steps": h} for h in locals_))]
    best, _ = choose(START, [*stages, stages[0]], score)
    every = [Candidate(fh.algorithms.FedAvg(step=s), h) for s, h in itertools.product((*steps, 0.5), locals_)]
    assert best == max(every, key=lambda one: score([one])[0])
    before = seen[: -len(every)]
    assert len(before) == len(set(before))


def test_a_tie_and_a_failure_leave_the_earlier_candidate():
    best, _ = choose(START, [grid({"step": 0.1})], lambda tried: [1.0 for _ in tried])
    assert best == START
    best, _ = choose(START, [grid({"step": 0.1})], lambda tried: [-float("inf") if c != START else 0.0 for c in tried])
    assert best == START


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_the_grids_of_the_table_are_runnable_and_differ(method):
    tried = [one for stage in method.stages for one in stage(method.start)]
    assert len(set(tried)) >= 3
    for one in tried:
        assert one.settings()["local_steps"] >= 1
        if method.name == "FedeRage":
            kappa = one.algorithm.kappa
            # No candidate is where networks collapse.
            assert one.algorithm.step * kappa <= 0.2 + 1e-12


def test_the_step_of_a_tail_follows_its_kappa():
    federage = next(method for method in METHODS if method.name == "FedeRage")
    for one in federage.stages[0](federage.start):
        assert one.algorithm.step == pytest.approx(
            0.1 / (1 - one.algorithm.gamma + one.algorithm.gamma / one.algorithm.alpha)
        )

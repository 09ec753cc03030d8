"""Many runs side by side give what each gives alone, and one compilation serves all settings."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fedhedge as fh
from federations import digits, quadratic
from fedhedge.simulation.rounds import compiled_rounds
from fedhedge.simulation.side_by_side import batched_rounds, parts

ALGORITHMS = [
    fh.algorithms.FedAvg(step=0.1),
    fh.algorithms.FedAvg(step=0.2),
    fh.algorithms.FedeRage(alpha=0.2, gamma=0.3, beta_step=0.05),
]
LAW = fh.availability.Independent(0.1)
OPTIONS = {"rounds": 20, "batch_size": 8, "evaluate_every": 8}


def close(left, right):
    for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5)


@pytest.mark.filterwarnings("ignore:FedeRage")
def test_sweep_is_simulate_within_rounding_and_in_order():
    runs = fh.sweep(ALGORITHMS, fh.models.Linear(), digits(), LAW, seeds=(0, 3), **OPTIONS)
    expected = [(algorithm, seed) for algorithm in ALGORITHMS for seed in (0, 3)]
    for run, (algorithm, seed) in zip(runs, expected, strict=True):
        alone = fh.simulate(algorithm, fh.models.Linear(), digits(), LAW, seed=seed, progress=False, **OPTIONS)
        assert run.settings == alone.settings
        close(run.params, alone.params)
        close(run.average_params, alone.average_params)
        assert run.participation.equals(alone.participation)
        assert run.counts == alone.counts
        keys = ["round", "client", "split", "metric"]
        assert run.history[keys].equals(alone.history[keys])
        losses = run.history.metric == "loss"
        np.testing.assert_allclose(run.history[losses]["value"], alone.history[losses]["value"], rtol=1e-3)


@pytest.mark.parametrize(
    ("law", "batch_size", "seeds"),
    [
        (fh.availability.FixedSize(size=3), 8, (4,)),
        (fh.availability.FixedSize(size=3), 8, (4, 5)),
        (fh.availability.Everyone(), None, (4, 5)),
    ],
    ids=["one seed", "two seeds", "the same rows in all rounds"],
)
def test_what_runs_share_is_theirs_too(law, batch_size, seeds):
    """Mini-batches, cohorts and settings that are the same in all runs are computed once."""
    methods = [fh.algorithms.FedProx(step=step, mu=0.1) for step in np.linspace(0.05, 0.4, 9)]
    options = {"rounds": 12, "batch_size": batch_size, "evaluate_every": 5}
    runs = fh.sweep(methods, fh.models.Linear(), digits(), law, seeds=seeds, **options)
    for number in (0, len(runs) - 1):
        method, seed = methods[number // len(seeds)], seeds[number % len(seeds)]
        alone = fh.simulate(method, fh.models.Linear(), digits(), law, seed=seed, progress=False, **options)
        assert runs[number].settings == alone.settings
        assert runs[number].participation.equals(alone.participation)
        close(runs[number].params, alone.params)
        close(runs[number].average_params, alone.average_params)


def test_rounds_in_which_chance_brings_the_same_clients_are_not_compiled_anew():
    clients, model = quadratic()
    law = fh.availability.FixedSize(size=1)
    before = batched_rounds._cache_size()
    runs = fh.sweep(ALGORITHMS[0], model, clients, law, seeds=(0, 1), rounds=12, evaluate_every=1, batch_size=None)
    here, there = (run.participation["client"].to_numpy() for run in runs)
    assert 0 < np.sum(here == there) < 12
    assert batched_rounds._cache_size() == before + 1


@pytest.mark.parametrize(
    ("seeds", "at_once", "expected"),
    [
        ([0, 1, 0, 1, 0, 1], 4, [[0, 2, 4], [1, 3, 5]]),
        ([0, 0, 0, 0, 0], 3, [[0, 1, 2], [3, 4]]),
        ([5, 4, 3, 2], 25, [[3, 2, 1, 0]]),
        ([0, 1], 1, [[0], [1]]),
        ([0] * 26, 25, [list(range(13)), list(range(13, 26))]),
    ],
)
def test_parts_hold_each_run_once_and_one_seed_where_it_fills_them(seeds, at_once, expected):
    assert parts(seeds, at_once) == expected


def test_values_of_settings_do_not_cost_a_compilation():
    def compilations():
        return compiled_rounds._cache_size() + batched_rounds._cache_size()

    fh.sweep(ALGORITHMS[:2], fh.models.Linear(), digits(), LAW, seeds=(0, 1), **OPTIONS)
    for step in (0.01, 0.02):
        fh.simulate(fh.algorithms.FedAvg(step=step), fh.models.Linear(), digits(), LAW, progress=False, **OPTIONS)
    before = compilations()
    others = [fh.algorithms.FedAvg(step=step) for step in (0.3, 0.4)]
    fh.sweep(others, fh.models.Linear(), digits(), LAW, seeds=(0, 1), **OPTIONS)
    fh.simulate(others[0], fh.models.Linear(), digits(), LAW, progress=False, **OPTIONS)
    assert compilations() == before


@fh.algorithms.traced
@dataclasses.dataclass(frozen=True)
class UntilItMoves(fh.algorithms.FedAvg):
    """Finished once a weight is above 0.02."""

    name = "UntilItMoves"

    def finished(self, server):
        return jnp.abs(server["weight"]).max() > 0.02


def test_a_run_that_is_finished_early_ends_in_a_sweep_too():
    methods = [UntilItMoves(step=step) for step in (1e-4, 0.3)]
    options = {"rounds": 8, "evaluate_every": 8, "batch_size": 8}
    runs = fh.sweep(methods, fh.models.Linear(), digits(), LAW, seeds=(0,), **options)
    assert runs[0].counts["rounds"] == 8
    for run, method in zip(runs, methods, strict=True):
        alone = fh.simulate(method, fh.models.Linear(), digits(), LAW, seed=0, progress=False, **options)
        assert run.counts == alone.counts
    assert runs[1].counts["rounds"] < 8


def test_a_failing_run_is_named():
    clients = digits().standardized()
    with pytest.raises(fh.Diverged, match="FedAvg, round"):
        fh.sweep(
            [fh.algorithms.FedAvg(step=0.1), fh.algorithms.FedAvg(step=1e38)], fh.models.Linear(), clients, LAW,
            seeds=(0,), **OPTIONS,
        )  # fmt: skip


def test_refuses_nothing_to_do():
    with pytest.raises(fh.InvalidInput, match="at least one of each"):
        fh.sweep([], fh.models.Linear(), digits(), LAW)

"""Many runs side by side give what each gives alone, and one compilation serves all settings."""

import jax
import numpy as np
import pytest

import fedhedge as fh
from federations import digits
from fedhedge.simulation.rounds import batched_rounds, compiled_rounds

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

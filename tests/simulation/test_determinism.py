"""The same seed gives the same result, bit for bit, whatever runs where."""

import dataclasses
import os
import subprocess
import sys

import jax
import numpy as np
import pytest

import fedhedge as fh
from federations import begin, digits, same

SPORADIC = fh.availability.presets.sporadic()

PROGRAMME = """
import os, sys
os.sched_setaffinity(0, {int(core) for core in sys.argv[1:]})  # before any thread starts
import hashlib, jax, numpy as np, fedhedge as fh
rule = fh.data.ByLabel(clients=30, classes_per_client=2)
clients = fh.data.load("digits").partition(rule, seed=0)
for algorithm in (fh.algorithms.FedeRage(beta_step=0.05), fh.algorithms.Scaffold(step=0.1)):
    run = fh.simulate(algorithm, fh.models.MLP(hidden=(300, 150)), clients,
                      fh.availability.FixedSize(size=2), local_steps=2, rounds=25, evaluate_every=10, progress=False)
    print(hashlib.sha256(b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(run.params))).hexdigest())
"""


def test_threads_do_not_matter():
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip(f"needs two cores, this process may use {len(cores)}")
    command = [sys.executable, "-W", "ignore", "-c", PROGRAMME]
    started = [
        subprocess.Popen([*command, *map(str, allowed)], stdout=subprocess.PIPE, text=True)
        for allowed in (cores[:1], cores[:2])
    ]
    printed = [process.communicate()[0] for process in started]
    assert all(process.returncode == 0 for process in started)
    assert printed[0] == printed[1]
    assert len(printed[0].split()) == 2


@pytest.mark.filterwarnings("ignore:FedeRage")
@pytest.mark.parametrize(
    ("algorithm", "law"),
    [
        pytest.param(
            fh.algorithms.FedeRage(beta_step=0.05),
            fh.availability.Independent(0.08),
            id="variable size",
            marks=pytest.mark.slow,
        ),
        pytest.param(fh.algorithms.Scaffold(), SPORADIC, id="fixed size"),
    ],
)
def test_chunks_between_evaluations_do_not_matter(algorithm, law):
    runs = [
        fh.simulate(
            algorithm, fh.models.MLP(hidden=(16,)), digits(), law, rounds=40, batch_size=8, evaluate_every=every,
            progress=False,
        )
        for every in (40, 7)
    ]  # fmt: skip
    assert same(runs[0].params, runs[1].params)
    assert same(runs[0].average_params, runs[1].average_params)


def test_loops_and_layouts_agree_within_rounding():
    def end(change_layout, **options):
        simulation = begin(
            fh.algorithms.Scaffold(), fh.models.MLP(hidden=(16,)), digits(), fh.availability.Independent(0.1),
            rounds=20, batch_size=8, evaluate_every=10, **options,
        )  # fmt: skip
        layout = dataclasses.replace(simulation.plan.layout, **change_layout)
        simulation.plan = dataclasses.replace(simulation.plan, layout=layout)
        return simulation.run(None, False, False)

    reference = end({})
    for other in (end({}, loop="host"), end({"side_by_side": True}), end({"unroll": True})):
        for left, right in zip(jax.tree.leaves(reference.params), jax.tree.leaves(other.params), strict=True):
            np.testing.assert_allclose(np.asarray(left), np.asarray(right), atol=2e-5)


def test_no_global_generator_is_touched():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    fh.simulate(fh.algorithms.FedAvg(), fh.models.Linear(), digits(), SPORADIC, rounds=3, progress=False)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_another_seed_is_another_result():
    runs = [
        fh.simulate(fh.algorithms.FedAvg(), fh.models.Linear(), digits(), SPORADIC, rounds=5, seed=seed, progress=False)
        for seed in (0, 1)
    ]
    assert not same(runs[0].params, runs[1].params)
    assert not runs[0].participation.equals(runs[1].participation)

"""Runs kept in files: the same as without, one by one or side by side, and refused when they are of something else."""

import dataclasses

import numpy as np
import pytest

import fedhedge as fh
from fedhedge.experiments import training
from fedhedge.experiments.training import Job, train
from fedhedge.simulation import CheckpointMismatch, driver
from fedhedge.simulation.side_by_side import together


@pytest.fixture(scope="module")
def clients():
    rng = np.random.default_rng(0)
    X, owner = rng.normal(size=(60, 3)), np.repeat(np.arange(4), 15)
    return fh.data.Clients.from_arrays(X, (X[:, 0] > 0).astype(int), owner)


def job(clients, seed, step=0.1, name=None):
    law = fh.availability.FixedSize(size=2)
    options = {"rounds": 6, "seed": seed, "evaluate_every": 3, "batch_size": 4}
    name = name or f"run-{step}-{seed}"
    return Job(name, fh.algorithms.FedAvg(step=step), fh.models.Linear(), clients, law, options)


def equal(ours, theirs):
    assert ours.settings == theirs.settings
    assert ours.history.equals(theirs.history)
    assert ours.participation.equals(theirs.participation)


@pytest.mark.parametrize("side_by_side", [False, True])
def test_a_kept_run_is_what_simulate_gives(clients, tmp_path, side_by_side):
    jobs = [job(clients, seed) for seed in range(3)]
    first = train(jobs, tmp_path, side_by_side=side_by_side, quiet=True)
    again = train(jobs, tmp_path, side_by_side=side_by_side, quiet=True)
    for one, run, kept in zip(jobs, first, again, strict=True):
        direct = fh.simulate(one.algorithm, one.model, clients, one.law, **one.options)
        assert run.settings == direct.settings == one.settings()
        np.testing.assert_allclose(run.history["value"], direct.history["value"], rtol=1e-5)
        equal(run, kept)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{one.name}.npz" for one in jobs)


def test_only_what_is_missing_is_done_and_a_cut_run_is_resumed(clients, tmp_path, monkeypatch):
    jobs = [job(clients, 0), job(clients, 1)]
    whole = train(jobs, tmp_path / "a", quiet=True)
    train(jobs[:1], tmp_path / "b", quiet=True)
    kept = tmp_path / "b" / f"{jobs[0].name}.npz"
    before = kept.stat().st_mtime_ns
    accept, calls = driver.Simulation.accept, []

    def cut(self, *arguments):
        calls.append(None)
        if len(calls) == 2:
            raise KeyboardInterrupt
        accept(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(driver, "CHECKPOINT_SECONDS", -1.0)
        patch.setattr(driver.Simulation, "accept", cut)
        with pytest.raises(KeyboardInterrupt):
            train(jobs, tmp_path / "b", quiet=True)
    assert (tmp_path / "b" / jobs[1].name / "checkpoint.npz").exists()
    both = train(jobs, tmp_path / "b", quiet=True)
    assert kept.stat().st_mtime_ns == before
    for ours, theirs in zip(both, whole, strict=True):
        equal(ours, theirs)
    assert not (tmp_path / "b" / jobs[1].name).exists()


def test_runs_side_by_side_are_kept_as_soon_as_those_of_their_shape_are_done(clients, tmp_path, monkeypatch):
    first = [job(clients, seed) for seed in range(2)]
    second = dataclasses.replace(job(clients, 0, name="other"), options={**first[0].options, "rounds": 4})
    done = []

    def cut(simulations):
        if done:
            raise KeyboardInterrupt
        done.append(together(simulations))

    with monkeypatch.context() as patch:
        patch.setattr(training, "together", cut)
        with pytest.raises(KeyboardInterrupt):
            train([*first, second], tmp_path, side_by_side=True, quiet=True)
    assert sorted(path.stem for path in tmp_path.iterdir()) == sorted(one.name for one in first)
    again = train([*first, second], tmp_path, side_by_side=True, quiet=True)
    whole = train([*first, second], tmp_path / "whole", side_by_side=True, quiet=True)
    for ours, theirs in zip(again, whole, strict=True):
        equal(ours, theirs)


def test_a_file_of_other_settings_is_refused_by_name(clients, tmp_path):
    train([job(clients, 0, name="one")], tmp_path, quiet=True)
    with pytest.raises(CheckpointMismatch, match=r"one\.npz.*step"):
        train([job(clients, 0, step=0.2, name="one")], tmp_path, quiet=True)


def test_a_damaged_file_is_refused(clients, tmp_path):
    (tmp_path / "one.npz").write_bytes(b"no archive")
    with pytest.raises(CheckpointMismatch, match="one"):
        train([job(clients, 0, name="one")], tmp_path, quiet=True)

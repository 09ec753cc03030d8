"""Killing and resuming gives the result of a run that was never interrupted."""

import os
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

import fedhedge as fh
from federations import digits, same

PROGRAMME = """
import sys, fedhedge as fh
from federations import digits
from fedhedge.simulation import driver
driver.CHECKPOINT_SECONDS = 0.0
algorithm = fh.algorithms.Scaffold(step=0.1) if sys.argv[2] == "Scaffold" else fh.algorithms.FedeRage(beta_step=0.05)
print("ready", flush=True)
run = fh.simulate(algorithm, fh.models.MLP(hidden=(16,)), digits(), fh.availability.Independent(0.1), rounds=600,
                  batch_size=8, evaluate_every=5, checkpoint=sys.argv[1], progress=False)
"""
ALGORITHMS = {"FedeRage": fh.algorithms.FedeRage(beta_step=0.05), "Scaffold": fh.algorithms.Scaffold(step=0.1)}


def whole(name, **options):
    return fh.simulate(
        ALGORITHMS[name], fh.models.MLP(hidden=(16,)), digits(), fh.availability.Independent(0.1), rounds=600,
        batch_size=8, evaluate_every=5, progress=False, **options,
    )  # fmt: skip


def equal(left, right):
    assert same(left.params, right.params)
    assert same(left.average_params, right.average_params)
    pd.testing.assert_frame_equal(left.history, right.history, check_exact=True)
    pd.testing.assert_frame_equal(left.participation, right.participation)
    assert left.counts == right.counts


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:FedeRage")
@pytest.mark.parametrize("name", ["Scaffold", "FedeRage"])
def test_sigkill_at_any_moment(name, tmp_path):
    reference = whole(name)
    environment = os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(__file__))}
    for delay in (0.05, 0.4):
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", PROGRAMME, str(tmp_path), name],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert process.stdout is not None
        process.stdout.readline()
        deadline = time.monotonic() + 60
        seen = (tmp_path / "checkpoint.npz").stat().st_mtime_ns if (tmp_path / "checkpoint.npz").exists() else 0
        while time.monotonic() < deadline and process.poll() is None:
            path = tmp_path / "checkpoint.npz"
            if path.exists() and path.stat().st_mtime_ns != seen:
                break
            time.sleep(0.01)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (tmp_path / "checkpoint.npz").exists()
    assert pd.read_parquet(tmp_path / "history.parquet")["round"].max() > 0
    equal(whole(name, checkpoint=tmp_path), reference)


@pytest.mark.filterwarnings("ignore:FedeRage")
def test_finished_run_is_left_alone(tmp_path):
    first = whole("FedeRage", checkpoint=tmp_path)
    stamp = (tmp_path / "checkpoint.npz").stat().st_mtime_ns
    equal(whole("FedeRage", checkpoint=tmp_path), first)
    assert (tmp_path / "checkpoint.npz").stat().st_mtime_ns == stamp


def small(tmp_path, algorithm=None, clients=None, **options):
    settings = {"rounds": 4, "evaluate_every": 2, "progress": False} | options
    return fh.simulate(
        algorithm or fh.algorithms.FedAvg(step=0.1),
        fh.models.Linear(),
        clients or digits(),
        fh.availability.FixedSize(size=3),
        checkpoint=tmp_path,
        **settings,
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"algorithm": fh.algorithms.FedAvg(step=0.2)}, "algorithm.step is 0.1 there and 0.2 here"),
        ({"algorithm": fh.algorithms.Scaffold(step=0.1)}, 'algorithm.name is "FedAvg" there and "Scaffold" here'),
        ({"seed": 1}, "seed is 0 there and 1 here"),
        ({"rounds": 6}, "rounds is 4 there and 6 here"),
        ({"clients": digits().standardized()}, "data.digest"),
    ],
)
def test_another_configuration_is_refused_and_the_key_named(tmp_path, change, message):
    small(tmp_path)
    with pytest.raises(fh.CheckpointMismatch, match=message):
        small(tmp_path, **change)
    small(tmp_path, resume=False, **change)


def test_damaged_checkpoint_is_refused(tmp_path):
    small(tmp_path)
    path = tmp_path / "checkpoint.npz"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(fh.CheckpointMismatch, match=r"checkpoint\.npz: not a file"):
        small(tmp_path)


def test_no_partial_files_are_left(tmp_path):
    small(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["checkpoint.npz", "history.parquet"]

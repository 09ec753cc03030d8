"""Runs spread over processes are those of one process, bit for bit."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import joblib
import pytest

import fedhedge as fh
from federations import digits, same

LAW = fh.availability.FixedSize(size=3)
STEPS = (0.05, 0.1)
# Batched side by side, one after another, and a solver between compiled programmes.
BATCHED = ([fh.algorithms.FedAvg(step=step) for step in STEPS] + [fh.algorithms.Scaffold()], fh.models.Linear())
LARGE = ([fh.algorithms.FedAvg(step=step) for step in STEPS], fh.models.MLP(hidden=(300, 150)))
SOLVER = ([fh.algorithms.DroAdmm(radius=radius) for radius in (0.01, 0.1)], fh.models.CrammerSinger())


def identical(one, other):
    assert len(one) == len(other)
    for left, right in zip(one, other, strict=True):
        assert same((left.params, left.average_params), (right.params, right.average_params))
        assert left.history.equals(right.history)
        assert left.participation.equals(right.participation)
        assert (left.settings, left.costs, left.counts) == (right.settings, right.costs, right.counts)
        assert left.model == right.model


@pytest.mark.parametrize(
    ("methods", "options"),
    [
        pytest.param(BATCHED, {"rounds": 20, "batch_size": 8, "evaluate_every": 8}, id="side by side"),
        pytest.param(LARGE, {"rounds": 6, "local_steps": 2}, id="one after another"),
        pytest.param(SOLVER, {"rounds": 3, "local_steps": 1, "batch_size": None}, id="a solver"),
    ],
)
def test_two_processes_give_the_same_bits_as_one(methods, options):
    arguments = (*methods, digits(), LAW)
    identical(*(fh.sweep(*arguments, seeds=(0, 3), n_jobs=n_jobs, **options) for n_jobs in (1, 2)))


def test_the_backend_may_be_chosen_where_joblib_has_it_chosen():
    algorithms, model = BATCHED
    options = {"rounds": 4, "batch_size": 8, "seeds": (0, 1)}
    alone = fh.sweep(algorithms, model, digits(), LAW, **options)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        identical(alone, fh.sweep(algorithms, model, digits(), LAW, **options))


def test_a_run_that_fails_elsewhere_is_named_here():
    algorithms = [fh.algorithms.FedAvg(step=1e38), fh.algorithms.Scaffold(step=1e38)]
    with pytest.raises(fh.Diverged, match=r"round \d+, client \d+ .* not finite") as caught:
        fh.sweep(algorithms, fh.models.Linear(), digits(), LAW, rounds=9, seeds=(0,), n_jobs=2)
    assert caught.value.round >= 0
    assert caught.value.client >= 0


@pytest.mark.parametrize("n_jobs", [0, -2, 10**9, 1.5, True, "2"])
def test_refuses_a_number_of_processes_that_is_none(n_jobs):
    with pytest.raises(fh.InvalidInput, match="n_jobs"):
        fh.sweep(fh.algorithms.FedAvg(), fh.models.Linear(), digits(), LAW, n_jobs=n_jobs)


OWN_METHOD = """
import dataclasses, jax, signal, fedhedge as fh
from typing import ClassVar
# A test run in the background passes on that interrupts are ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

@fh.algorithms.traced
@dataclasses.dataclass(frozen=True)
class Proximal(fh.algorithms.FirstOrder):
    name: ClassVar[str] = "Proximal"
    mu: float = 0.01
    def direction(self, loss, gradient, point, down, client):
        return jax.tree.map(lambda g, y, x: g + self.mu * (y - x), gradient, point, down)

clients = fh.data.load("digits").partition(fh.data.ByLabel(clients=6), seed=0)
law = fh.availability.FixedSize(size=2)
methods = [Proximal(), fh.algorithms.Scaffold()]
runs = [fh.sweep(methods, fh.models.Linear(), clients, law, seeds=[0, 1], rounds=ROUNDS, evaluate_on=(), n_jobs=n)
        for n in JOBS]
digests = [[run.params["bias"].tobytes() for run in found] for found in runs]
assert digests[0] == digests[1], "not the same"
"""


def script(folder, **values):
    path = folder / "script.py"
    path.write_text("".join(f"{name} = {value}\n" for name, value in values.items()) + OWN_METHOD)
    return [sys.executable, str(path)]


@pytest.mark.slow
def test_a_method_of_the_callers_own_script_travels(tmp_path):
    done = subprocess.run(script(tmp_path, ROUNDS=3, JOBS=[1, 2]), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def children(parent):
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, owner = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(owner) == parent and state != "Z":
            found.append(int(stat.parent.name))
    return found


def wait_until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)
    return condition()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_an_interrupt_ends_the_workers(tmp_path):
    command = script(tmp_path, ROUNDS=10**7, JOBS=[2, 2])
    caller = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        assert wait_until(lambda: len(children(caller.pid)) >= 2)
        workers = children(caller.pid)
        time.sleep(2.0)
        caller.send_signal(signal.SIGINT)
        assert wait_until(lambda: caller.poll() is not None), "the caller goes on"
        assert wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers)), "workers go on"
    finally:
        if caller.poll() is None:
            os.killpg(caller.pid, signal.SIGKILL)

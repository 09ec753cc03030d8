"""Rows and client states that stay on disk change nothing: the same bits as in memory, without the memory."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fedhedge as fh
from federations import digits, same
from fedhedge.simulation import on_disk

SOME = fh.availability.Independent(0.1)
OPTIONS = {"rounds": 24, "local_steps": 2, "batch_size": 8, "evaluate_every": 10, "progress": False}
# Bytes that one to four rounds of the tests' clients take, so that chunks of ten rounds are cut.
FEW_ROUNDS = 300_000
SLOW = pytest.mark.slow
FAULTS = fh.Faults(lost=0.3, forgets=0.3)
LINEAR = fh.models.Linear()


def mapped(clients: fh.data.Clients, folder: Path) -> fh.data.Clients:
    """The same clients, with their features in a file."""
    np.save(folder / "features.npy", clients.features)
    features = np.load(folder / "features.npy", mmap_mode="r")
    return fh.data.Clients(
        features, clients.labels, clients.client, clients.split, clients.names, clients.classes,
        description=clients.description,
    )  # fmt: skip


def identical(one: fh.simulation.Run, other: fh.simulation.Run) -> None:
    assert same((one.params, one.average_params), (other.params, other.average_params))
    assert one.history.equals(other.history)
    assert one.participation.equals(other.participation)
    assert (one.settings, one.costs, one.counts) == (other.settings, other.costs, other.counts)


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        pytest.param(fh.algorithms.Scaffold(step=0.05), {}, id="control variates"),
        pytest.param(fh.algorithms.Scaffold(step=0.05), {"loop": "host"}, id="host loop", marks=SLOW),
        pytest.param(fh.algorithms.CompressedScaffold(step=0.05), {}, id="several arrays", marks=SLOW),
        pytest.param(
            fh.algorithms.Scaffold(step=0.05),
            {"faults": fh.Faults(lost=0.3, forgets=0.3)},
            id="lost uploads and states",
        ),
    ],
)
def test_client_states_on_disk(algorithm, options, tmp_path, monkeypatch):
    monkeypatch.setattr(on_disk, "BUDGET", FEW_ROUNDS)
    arguments = (algorithm, LINEAR, digits(), SOME)
    memory = fh.simulate(*arguments, **OPTIONS | options)
    disk = fh.simulate(*arguments, client_state=tmp_path, **OPTIONS | options)
    identical(memory, disk)
    assert list(tmp_path.iterdir()) == [], "what a run wrote goes with it"


def test_first_states_are_those_of_each_client(tmp_path):
    method = fh.algorithms.DpDroAdmm(noise=0.0, rounds=4, radius=tuple(0.01 * (1 + k) for k in range(30)))
    arguments = (method, fh.models.CrammerSinger(), digits(), fh.availability.FixedSize())
    options = {"rounds": 4, "local_steps": 1, "batch_size": None, "progress": False}
    identical(*(fh.simulate(*arguments, client_state=folder, **options) for folder in (None, tmp_path)))


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        pytest.param(fh.algorithms.FedAvg(step=0.05), {}, id="mini-batches"),
        pytest.param(fh.algorithms.FedAvg(step=0.05), {"batch_size": None, "local_steps": 3}, id="all rows"),
        pytest.param(fh.algorithms.PowerOfChoice(fh.algorithms.FedAvg(step=0.05)), {}, id="reports on all rows"),
        pytest.param(
            fh.algorithms.FedeRage(beta_step=0.05), {"weighting": "rows"}, id="loss of the first model", marks=SLOW
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:FedeRage")
def test_rows_on_disk(algorithm, options, tmp_path, monkeypatch):
    monkeypatch.setattr(on_disk, "BUDGET", FEW_ROUNDS)
    clients = digits()
    there = mapped(clients, tmp_path)
    assert there.on_disk
    assert not clients.on_disk
    assert there.digest() == clients.digest()
    chosen = OPTIONS | {"evaluate_on": ("train", "test")} | options
    identical(*(fh.simulate(algorithm, LINEAR, which, SOME, **chosen) for which in (clients, there)))


def test_rows_and_states_on_disk_with_a_solver(tmp_path):
    arguments = (fh.models.CrammerSinger(), digits(), fh.availability.FixedSize(size=2))
    options = {"rounds": 3, "local_steps": 1, "batch_size": None, "progress": False}
    memory = fh.simulate(fh.algorithms.DroAdmm(), *arguments, **options)
    there = mapped(digits(), tmp_path)
    disk = fh.simulate(
        fh.algorithms.DroAdmm(), arguments[0], there, arguments[2], client_state=tmp_path / "states", **options
    )
    identical(memory, disk)


def test_a_sweep_leaves_rows_on_disk_there(tmp_path):
    methods = [fh.algorithms.FedAvg(step=step) for step in (0.05, 0.1)]
    options = {"rounds": 4, "batch_size": 8, "seeds": (0, 1)}
    there = mapped(digits(), tmp_path)
    one, two = (fh.sweep(methods, LINEAR, there, SOME, n_jobs=n_jobs, **options) for n_jobs in (1, 2))
    alone = [fh.simulate(m, LINEAR, there, SOME, rounds=4, batch_size=8, seed=s, progress=False)
             for m in methods for s in (0, 1)]  # fmt: skip
    for left, middle, right in zip(one, two, alone, strict=True):
        identical(left, right)
        identical(middle, right)


def test_a_mapped_file_is_not_copied_and_others_are(tmp_path):
    there = mapped(digits(), tmp_path)
    assert np.shares_memory(there.features, np.asarray(there.rows("train")[0]).base)
    writable = np.load(tmp_path / "features.npy", mmap_mode="r+")
    copied = fh.data.Clients(writable, there.labels, there.client, there.split)
    assert not copied.on_disk
    assert not np.shares_memory(copied.features, writable)


def test_refuses_rows_on_disk_in_another_order(tmp_path):
    there = mapped(digits(), tmp_path)
    with pytest.raises(fh.InvalidInput, match="split, then client"):
        fh.data.Clients(there.features, there.labels, there.client[::-1], there.split)


def test_refuses_states_on_disk_beside_a_checkpoint(tmp_path):
    with pytest.raises(fh.InvalidInput, match="client_state"):
        fh.simulate(fh.algorithms.FedAvg(), LINEAR, digits(), SOME, checkpoint=tmp_path, client_state=tmp_path)
    with pytest.raises(fh.InvalidInput, match="client_state"):
        fh.simulate(fh.algorithms.FedAvg(), LINEAR, digits(), SOME, client_state=3)


LARGE = """
import sys, numpy as np, fedhedge as fh
folder, on_disk = sys.argv[1], sys.argv[2] == "disk"
clients, rows, width = 6000, 2, 4096
def resident():
    lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(lines["RssAnon"].split()[0]) / 1024
numbers = np.repeat(np.arange(clients), rows)
law = fh.availability.FixedSize(size=3)
options = dict(rounds=20, batch_size=2, evaluate_every=20, evaluate_on=(), progress=False)
few = fh.data.Clients.from_splits((np.eye(4), [0, 1, 0, 1], [0, 1, 2, 3]))
fh.simulate(fh.algorithms.Scaffold(), fh.models.Linear(), few, law, **options)
before = resident()
features = np.load(folder + "/features.npy", mmap_mode="r")
if not on_disk:
    features = np.array(features)
data = fh.data.Clients(features, numbers % 2, numbers, np.zeros(len(numbers), int))
run = fh.simulate(fh.algorithms.Scaffold(), fh.models.Linear(), data, law,
                  client_state=folder + "/states" if on_disk else None, **options)
print(resident() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_memory_does_not_hold_what_is_on_disk(tmp_path):
    """6,000 clients with 32 kB of states and 32 kB of rows each: 190 MB of both; compiling takes up to 100 MB."""
    file = np.lib.format.open_memmap(tmp_path / "features.npy", mode="w+", dtype=np.float32, shape=(12_000, 4096))
    file[:] = np.random.default_rng(0).standard_normal(4096, np.float32)
    file.flush()
    grown = {}
    for where in ("memory", "disk"):
        command = [sys.executable, "-c", LARGE, str(tmp_path), where]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=120)
        assert done.returncode == 0, done.stderr
        grown[where] = float(done.stdout)
    assert grown["memory"] > 380
    assert grown["disk"] < 190


def test_a_map_that_cannot_stay_on_disk_is_copied_with_a_warning(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, np.ones((4, 2), np.float32))
    for mode in ("r+", "c"):
        with pytest.warns(UserWarning, match="copied into memory; what stays on disk: float32"):
            clients = fh.data.Clients(np.load(path, mmap_mode=mode), [0, 1, 0, 1], [0, 0, 1, 1], [0, 0, 0, 0])
        assert not clients.on_disk


@pytest.mark.parametrize("name", ["", "file", "file/below"])
def test_a_place_for_states_that_is_none_is_refused(tmp_path, monkeypatch, name):
    (tmp_path / "file").write_text("mine")
    monkeypatch.chdir(tmp_path)
    clients = fh.data.Clients.from_arrays(np.eye(6), [0, 1] * 3, [0, 0, 0, 1, 1, 1], validation=0.0, test=0.0)
    with pytest.raises(fh.checks.InvalidInput, match="client_state: received"):
        fh.simulate(fh.algorithms.FedAvg(), fh.models.Linear(), clients, fh.availability.Everyone(), client_state=name)

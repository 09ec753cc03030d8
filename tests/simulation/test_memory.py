"""Memory that runs hold: one copy of the rows for all, nothing once they are over; and runs that can hold none."""

import gc
import weakref

import jax
import pytest

import fedhedge as fh
from federations import begin, digits
from fedhedge.simulation import driver, memory
from fedhedge.simulation.options import Options
from fedhedge.simulation.rows import on_device

LAW = fh.availability.FixedSize(size=2)


def start(algorithm, clients):
    return begin(algorithm, fh.models.Linear(), clients, LAW, rounds=2, batch_size=4)


def test_runs_on_the_same_clients_share_the_rows():
    clients = digits()
    one, two = (start(fh.algorithms.FedAvg(step=step), clients) for step in (0.1, 0.2))
    assert one.inputs.pool.features is two.inputs.pool.features
    assert one.evaluators[0].features is two.evaluators[0].features
    other = start(fh.algorithms.FedAvg(step=0.1), clients.standardized())
    assert other.inputs.pool.features is not one.inputs.pool.features


@pytest.mark.parametrize("algorithm", [fh.algorithms.FedAvg(step=0.1), fh.algorithms.FedeRage(step=0.001)])
@pytest.mark.filterwarnings("ignore:FedeRage")
def test_a_run_and_the_rows_go_without_the_collector(algorithm):
    clients = digits().standardized()
    gc.collect()
    gc.disable()
    try:
        simulation = start(algorithm, clients)
        simulation.run(None, False, False)
        rows = on_device(clients, "train", "float32")[0]
        gone = [weakref.ref(thing) for thing in (simulation, clients)]
        del simulation, clients
        assert [reference() for reference in gone] == [None, None]
        assert not rows.is_deleted()
    finally:
        gc.enable()


@pytest.mark.parametrize("size", [16, None])
def test_mini_batches_may_take_what_there_is_and_no_more(size, monkeypatch):
    # 3 clients, 1000 steps of 16 rows each, 4 bytes for the number of a row.
    monkeypatch.setattr(memory, "of_this_machine", lambda: 3 * 1000 * 16 * 4.0)
    options = Options(batch_size=size)
    options.check_memory(3, 1000, 16)
    with pytest.raises(fh.InvalidInput, match=rf"local_steps, batch_size: received \(1001, {size}\); allowed: so few"):
        options.check_memory(3, 1001, 16)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="other devices have memory of their own")
@pytest.mark.parametrize(
    "absurd", [{"local_steps": 10**9}, {"local_steps": [1] * 29 + [10**9]}, {"local_steps": 10**9, "batch_size": None}]
)
def test_absurd_counts_are_refused_before_any_work(absurd, monkeypatch):
    monkeypatch.setattr(memory, "of_this_machine", lambda: 64.0 * 2**30)
    monkeypatch.setattr(driver, "on_device", None)
    with pytest.raises(fh.InvalidInput, match="this machine has 64 GiB"):
        fh.simulate(fh.algorithms.FedAvg(), fh.models.Linear(), digits(), LAW, **absurd)
    with pytest.raises(fh.InvalidInput, match="this machine has 64 GiB"):
        fh.sweep(fh.algorithms.FedAvg(), fh.models.Linear(), digits(), LAW, **absurd)


def test_rounds_are_counted_in_32_bits():
    with pytest.raises(fh.InvalidInput, match="rounds: received 1000000000000; allowed: a whole number from 1 to 2147"):
        Options(rounds=10**12)


def test_this_machine_has_room_for_this_process():
    assert memory.of_this_machine() > 2**28

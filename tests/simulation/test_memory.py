"""Memory that runs hold: one copy of the rows for all, and nothing once they are over."""

import gc
import weakref

import pytest

import fedhedge as fh
from federations import begin, digits
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

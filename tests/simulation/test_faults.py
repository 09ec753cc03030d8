"""Uploads that get lost and clients that forget, replayed from the tables of the law and of the faults."""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import pytest

import fedhedge as fh
from federations import begin, same
from fedhedge.algorithms import FirstOrder, traced
from fedhedge.simulation import Faults
from parabolas import COUNT, STEP, finished, parabolas, replay

LAW = fh.availability.Independent([0.7, 0.5, 0.4, 0.3, 0.6])
ROUNDS = 80
pytestmark = pytest.mark.filterwarnings("ignore:.*without acknowledgement")
FEDAVG = fh.algorithms.FedAvg(step=STEP)
SCAFFOLD = fh.algorithms.Scaffold(step=STEP)


@traced
@dataclasses.dataclass(frozen=True)
class Counting(FirstOrder):
    """FedAvg whose clients count their visits, from 10 on."""

    name: ClassVar[str] = "Counting"

    def init_clients(self, clients, server):
        return jnp.full(clients, 10.0)

    def direction(self, loss, gradient, point, down, client):
        return gradient

    def finish(self, point, down, client, steps):
        return point, client + 1.0


def tables(faults):
    present = LAW.schedule(0, 0, ROUNDS)
    lost, forgets = faults.schedule(0, 0, ROUNDS, COUNT)
    nothing = np.zeros_like(present)
    return present, nothing if lost is None else lost, nothing if forgets is None else forgets


@pytest.mark.parametrize(
    "faults",
    [
        Faults(lost=0.3),
        Faults(lost=0.3, acknowledged=False),
        Faults(forgets=0.3),
        Faults(lost=0.4, acknowledged=False, forgets=0.2),
        Faults(lost=0.4, forgets=0.2),
    ],
    ids=str,
)
def test_states_models_and_counts(faults):
    present, lost, forgets = tables(faults)
    states = np.full(COUNT, 10.0)
    for came, gone, blank in zip(present, lost, forgets, strict=True):
        states[came & blank] = 10.0
        states[came & ~gone if faults.acknowledged else came] += 1.0
    simulation = finished(Counting(step=STEP), LAW, rounds=ROUNDS, faults=faults)
    np.testing.assert_array_equal(simulation.state.clients, states)
    used = present & ~lost
    models, _ = replay(used, lambda losses, who: np.ones(len(who)))
    run = simulation.result()
    assert float(run.params) == pytest.approx(models[-1], abs=1e-6)
    assert float(run.average_params) == pytest.approx(models.mean(), abs=1e-6)
    np.testing.assert_array_equal(np.stack(np.nonzero(used)), run.participation.to_numpy().T)
    assert run.counts["lost_uploads"] == (present & lost).sum()
    assert run.counts["uploads"] == used.sum()
    assert run.counts["empty_rounds"] == (~used.any(axis=1)).sum()


def invariant(faults):
    """Largest |c - mean c_i| over the largest |c_i| of SCAFFOLD."""
    simulation = finished(SCAFFOLD, LAW, rounds=ROUNDS, faults=faults)
    own = np.asarray(simulation.state.clients, np.float64)
    common = np.asarray(simulation.state.server.control)
    return abs(own.mean() - common) / np.abs(own).max()


def test_scaffolds_invariant_holds_when_losses_are_acknowledged_and_breaks_otherwise():
    assert invariant(Faults(lost=0.3)) < 1e-6
    assert invariant(Faults(lost=0.3, acknowledged=False)) > 0.01
    assert invariant(Faults(forgets=0.3)) > 0.01


def test_faults_that_never_happen_change_nothing_and_cost_nothing():
    plain, none = (finished(SCAFFOLD, LAW, faults=faults) for faults in (None, Faults()))
    assert same(plain.state, none.state)
    assert plain.plan == none.plan
    schedule = none.schedule(none.table(101), 5)
    assert schedule.lost is None
    assert schedule.forgets is None
    assert "faults" not in plain.settings
    assert none.settings["faults"] == {"lost": 0.0, "acknowledged": True, "forgets": 0.0}


def test_when_every_upload_is_lost_nothing_moves():
    simulation = finished(FEDAVG, LAW, rounds=10, faults=Faults(lost=1.0))
    run = simulation.result()
    assert float(run.params) == 0.0
    assert run.counts["uploads"] == 0
    assert run.counts["empty_rounds"] == 10


def test_frequencies_and_independence_of_losses_lapses_and_availability():
    lost, forgets = Faults(lost=0.3, forgets=0.1).schedule(3, 0, 4000, COUNT)
    present = LAW.schedule(3, 0, 4000)
    for table, rate in ((lost, 0.3), (forgets, 0.1)):
        error = np.sqrt(rate * (1 - rate) / table.size)
        assert abs(table.mean() - rate) <= 4.5 * error
    for one, other in ((lost, forgets), (lost, present), (forgets, present)):
        both = (one & other).mean(axis=0) - one.mean(axis=0) * other.mean(axis=0)
        assert np.abs(both).max() <= 4.5 * 0.25 / np.sqrt(4000)


def test_a_round_is_the_same_whatever_else_is_asked_for():
    faults = Faults(lost=0.5, forgets=0.5)
    whole, part = faults.schedule(0, 0, 20, 7), faults.schedule(0, 13, 15, 7)
    for a, b in zip(whole, part, strict=True):
        np.testing.assert_array_equal(a[13:15], b)
    assert (whole[0] != faults.schedule(1, 0, 20, 7)[0]).any()


@pytest.mark.parametrize(
    ("arguments", "named"), [({"lost": 1.5}, "lost"), ({"forgets": -0.1}, "forgets"), ({"acknowledged": 1}, "acknow")]
)
def test_refuses_values_out_of_range(arguments, named):
    with pytest.raises(fh.InvalidInput, match=f"^{named}"):
        Faults(**arguments)
    with pytest.raises(fh.InvalidInput, match=r"faults: received 0\.1; allowed: None, or faults"):
        finished(FEDAVG, LAW, faults=0.1)


@pytest.mark.parametrize(
    ("algorithm", "faults", "expected"),
    [
        (SCAFFOLD, Faults(lost=0.1, acknowledged=False), True),
        (SCAFFOLD, Faults(lost=0.1), False),
        (SCAFFOLD, Faults(forgets=0.5, acknowledged=False), False),
        (FEDAVG, Faults(lost=0.1, acknowledged=False), False),
    ],
    ids=str,
)
def test_warns_where_clients_keep_a_state_of_uploads_that_never_arrived(algorithm, faults, expected):
    clients, model = parabolas()
    said = begin(algorithm, model, clients, LAW, faults=faults).warned
    assert any("without acknowledgement" in text for text in said) is expected


def test_faults_are_found_where_the_complaint_says():
    with pytest.raises(fh.InvalidInput, match=r"such as fedhedge\.Faults\(lost=0\.1\)"):
        finished(FEDAVG, LAW, faults=0.1)
    assert fh.Faults is fh.simulation.Faults is Faults

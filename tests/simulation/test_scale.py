"""What a round takes does not grow with the number of clients."""

import jax
import numpy as np
import pytest

import fedhedge as fh
from federations import begin, digits, same
from fedhedge.simulation.driver import Simulation
from fedhedge.simulation.rounds import compiled_rounds
from fedhedge.simulation.schedule import Table, compact

MANY = 20_000


def federation(clients: int) -> fh.data.Clients:
    """One row for each client, and one to test on."""
    numbers = np.arange(clients)
    features = np.random.default_rng(0).standard_normal((clients, 3), np.float32)
    return fh.data.Clients.from_splits((features, numbers % 2, numbers), test=(features[:1], [0], [0]))


def started(clients: int, algorithm: fh.algorithms.Algorithm, law: fh.availability.Law) -> Simulation:
    return begin(
        algorithm, fh.models.Linear(), federation(clients), law,
        rounds=30, local_steps=1, batch_size=1, evaluate_every=30, evaluate_on=(),
    )  # fmt: skip


@pytest.mark.parametrize("law", [fh.availability.FixedSize(size=10), fh.availability.Independent(0.001)], ids=str)
def test_tables_and_slots_have_the_size_of_the_cohorts(law):
    simulation = started(MANY, fh.algorithms.Scaffold(), law)
    table = simulation.table(30)
    assert table.sizes.sum() == len(table.clients) < 30 * 60
    schedule = simulation.schedule(table, simulation.slots(table))
    assert max(leaf.size for leaf in jax.tree.leaves(schedule)) <= 30 * 64
    run = simulation.run(None, False, False)
    np.testing.assert_array_equal(run.participation["client"], table.clients)
    np.testing.assert_array_equal(run.participation["round"], table.rows)


def test_the_programme_of_a_round_holds_no_table_of_all_clients_but_their_states():
    """Memory of the compiled loop: the states once, updated in place, and little beside them."""
    simulation = started(MANY, fh.algorithms.Scaffold(), fh.availability.FixedSize(size=10))
    schedule = simulation.schedule(simulation.table(30), 10)
    work = (simulation.plan, simulation.inputs, simulation.state, simulation.tally, schedule, np.int32(30))
    compiled = compiled_rounds.lower(*work).compile()
    memory = compiled.memory_analysis()
    states = sum(leaf.nbytes for leaf in jax.tree.leaves(simulation.state.clients))
    assert memory.alias_size_in_bytes >= states
    assert memory.temp_size_in_bytes < states / 4


def test_what_a_round_is_given_is_used_up_and_nothing_else():
    simulation = begin(fh.algorithms.Scaffold(), fh.models.Linear(), digits(), fh.availability.FixedSize(), rounds=3)
    params = jax.tree.map(np.array, simulation.start.params)
    before = simulation.state
    simulation.run(None, False, False)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(before.clients))
    assert same(simulation.start.params, params)


def test_compact_against_a_table_of_booleans():
    rng = np.random.default_rng(0)
    present, lost = rng.random((2, 6, 9)) < 0.4
    mass, steps = rng.integers(1, 9, 9), rng.integers(1, 4, 9)
    cohorts = [np.flatnonzero(row) for row in present]
    faults = (np.concatenate([row[cohort] for row, cohort in zip(lost, cohorts, strict=True)]), None)
    schedule = compact(Table.of(cohorts, faults), 4, 8, 9, mass, steps)
    assert schedule.forgets is None
    np.testing.assert_array_equal(schedule.number, 4 + np.arange(8))
    for row in range(8):
        who = np.flatnonzero(present[row]) if row < 6 else np.zeros(0, int)
        size = len(who)
        np.testing.assert_array_equal(schedule.clients[row], np.r_[who, np.full(9 - size, 9)])
        for name, expected in {
            "weights": mass[who] / max(1, mass[who].sum()), "mass": mass[who] / mass.sum(), "steps": steps[who],
            "lost": lost[row, who] if row < 6 else who,
        }.items():  # fmt: skip
            np.testing.assert_allclose(getattr(schedule, name)[row], np.r_[expected, np.zeros(9 - size)], rtol=1e-6)

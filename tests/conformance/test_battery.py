"""What every registered method must do; a new method is tested by being registered."""

import dataclasses
import functools
import json

import jax
import numpy as np
import pytest

import fedhedge as fh
from conformance.subjects import (
    CHANCES,
    DRAWS,
    LAW,
    ROUNDS,
    close,
    federation,
    leaves,
    method,
    of_matrices,
    prepared,
    ran,
    tolerance,
)  # fmt: skip
from federations import same
from fedhedge import files
from fedhedge.algorithms import METHODS, Algorithm
from fedhedge.simulation import driver
from fedhedge.simulation.arithmetic import arithmetic

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
EVERY = sorted(METHODS)
FIRST_ORDER = [name for name in EVERY if not of_matrices(name)]
TRACEABLE = [name for name in EVERY if METHODS[name].traceable]


@functools.cache
def watched(name):
    """A run in the host loop, and its states before and after each round, with who took part."""
    simulation = prepared(name, loop="host", evaluate_every=1)
    states = [jax.tree.map(np.asarray, simulation.state)]
    accept = simulation.accept

    def accept_and_keep(*arguments):
        accept(*arguments)
        states.append(jax.tree.map(np.asarray, simulation.state))

    simulation.accept = accept_and_keep
    ran(simulation)
    return simulation, states


def present(rounds):
    return LAW.bind(5).schedule(1, 0, rounds)


@pytest.mark.parametrize("name", EVERY)
def test_an_empty_round_changes_nothing(name):
    simulation, states = watched(name)
    empty = np.flatnonzero(~present(simulation.done).any(axis=1))
    assert len(empty)
    for t in empty:
        assert same(states[t].server, states[t + 1].server)
        assert same(states[t].clients, states[t + 1].clients)


@pytest.mark.parametrize("name", EVERY)
def test_it_moves_and_stays_finite(name):
    simulation, states = watched(name)
    before, after = (simulation.algorithm.iterate(state.server) for state in (states[0], states[-1]))
    assert not same(before, after)
    assert all(np.isfinite(leaf).all() for leaf in leaves(states[-1]))


@pytest.mark.parametrize("name", EVERY)
def test_a_client_that_is_not_there_keeps_its_state(name):
    simulation, states = watched(name)
    for t, row in enumerate(present(simulation.done)):
        for before, after in zip(leaves(states[t].clients), leaves(states[t + 1].clients), strict=True):
            assert before[~row].tobytes() == after[~row].tobytes()


@pytest.mark.parametrize("name", EVERY)
def test_a_client_that_never_comes_is_left_alone(name):
    law = fh.availability.Independent((*CHANCES[:4], 0.0))
    simulation = prepared(name, law=law, loop="host")
    initial = leaves(jax.tree.map(np.asarray, simulation.state.clients))
    ran(simulation)
    assert all(np.isfinite(leaf).all() for leaf in leaves(simulation.state))
    for before, after in zip(initial, leaves(simulation.state.clients), strict=True):
        assert before[4].tobytes() == after[4].tobytes()


class Killed(RuntimeError):
    """Stands for the end of a process."""


@pytest.mark.parametrize("name", EVERY)
def test_resume_is_exact(name, tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "CHECKPOINT_SECONDS", -1.0)
    whole = ran(prepared(name, loop="host")).result()
    next_stop, calls = driver.Simulation.next_stop, []

    def dying(self):
        calls.append(1)
        if len(calls) == 3:
            raise Killed
        return next_stop(self)

    with arithmetic(METHODS[name].precision):
        monkeypatch.setattr(driver.Simulation, "next_stop", dying)
        with pytest.raises(Killed):
            prepared(name, loop="host").run(tmp_path, True, False)
        resumed = prepared(name, loop="host").run(tmp_path, True, False)
    # Two stops before the end of the process, one that ends it, and what was left.
    assert 3 < len(calls) <= 4
    assert same(resumed.params, whole.params)
    assert same(resumed.average_params, whole.average_params)
    assert resumed.history.equals(whole.history)
    assert resumed.participation.equals(whole.participation)
    assert resumed.counts == whole.counts


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in EVERY if name not in DRAWS])
def test_the_order_of_clients_does_not_matter(name):
    """Noise, which belongs to a client's number, is off."""
    order = (3, 0, 4, 1, 2)
    results = []
    for numbers in ((0, 1, 2, 3, 4), order):
        law = fh.availability.Subsets({tuple(np.flatnonzero(np.isin(numbers, who))): 1.0 for who in [(0, 2, 3)]}, 5)
        algorithm = method(name, law)
        quiet = {name: 0.0 for name in ("noise", "lambda_noise") if hasattr(algorithm, name)}
        algorithm = dataclasses.replace(algorithm, **quiet)
        clients = federation(numbers)
        results.append(ran(prepared(name, algorithm=algorithm, clients=clients, law=law, loop="host", rounds=4)))
    first, second = results
    close(first.result().params, second.result().params, tolerance(name))
    own = jax.tree.map(lambda leaf: np.asarray(leaf)[list(order)], first.state.clients)
    close(own, second.state.clients, tolerance(name))


@pytest.mark.parametrize("name", EVERY)
def test_settings_are_plain_and_floats_are_traced(name):
    algorithm = method(name)
    settings = files.plain(algorithm.settings())
    assert json.loads(json.dumps(settings, allow_nan=False)) == settings
    assert settings["name"] == name

    def floats(of):
        values = [getattr(of, field.name) for field in dataclasses.fields(of)]
        nested = [value for value in values if isinstance(value, Algorithm)]
        flat = [x for value in values for x in (value if isinstance(value, tuple) else (value,))]
        return sorted([x for x in flat if isinstance(x, float)] + [x for of in nested for x in floats(of)])

    assert sorted(jax.tree.leaves(algorithm)) == floats(algorithm)


@pytest.mark.slow
@pytest.mark.parametrize("name", TRACEABLE)
def test_the_compiled_loop_is_the_host_loop(name):
    simulation = ran(prepared(name, loop="compiled", evaluate_every=1))
    close(simulation.state, watched(name)[1][-1], tolerance(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_one_client(name):
    law = fh.availability.Everyone()
    simulation = ran(prepared(name, clients=federation((1,)), law=law))
    assert all(np.isfinite(leaf).all() for leaf in leaves(simulation.state))
    assert not same(simulation.result().params, prepared(name, clients=federation((1,)), law=law).result().params)


@pytest.mark.slow
@pytest.mark.parametrize("name", FIRST_ORDER)
def test_local_steps_may_differ(name):
    """A client that takes fewer steps than the longest does what it does where all take as few."""
    law = fh.availability.Subsets({(1,): 1.0}, clients=5)
    alone = ran(prepared(name, law=law, local_steps=2, rounds=3))
    beside = ran(prepared(name, law=law, local_steps=[4, 2, 1, 3, 5], rounds=3))
    close(alone.result().params, beside.result().params, tolerance(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", TRACEABLE)
def test_lost_uploads_are_as_if_the_client_had_not_come(name):
    """With acknowledgement: nothing of a lost visit stays, with every upload lost nothing of the run."""
    faults = fh.simulation.Faults(lost=1.0)
    simulation = prepared(name, faults=faults)
    before = jax.tree.map(np.asarray, simulation.state.clients)
    ran(simulation)
    assert same(before, jax.tree.map(np.asarray, simulation.state.clients))
    assert len(simulation.result().participation) == 0
    assert simulation.done == ROUNDS

"""The first phase of a round: reports, weights, who trains, and what it costs."""

import dataclasses
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import fedhedge as fh
from federations import begin, same
from fedhedge.algorithms import FirstOrder, traced
from fedhedge.algorithms.weighting import client_losses, over_rows
from fedhedge.simulation import driver
from parabolas import COUNT, STEP, finished, losses, parabolas, replay

LAW = fh.availability.Independent([0.5, 0.4, 0.3, 0.2, 0.1])
ROUNDS = 40


class Server(NamedTuple):
    """A model, the sum of reports of each client so far, and a number that is drawn each round."""

    model: jax.Array
    reports: jax.Array
    luck: jax.Array


@traced
@dataclasses.dataclass(frozen=True)
class Probing(FirstOrder):
    """Counts a client's rows and sums its features by probe; only clients with an even number train, if any may."""

    name: ClassVar[str] = "Probing"
    idle: bool = False

    def init_server(self, start):
        return Server(start.params, jnp.zeros((start.clients, 2)), jnp.zeros(()))

    def init_clients(self, clients, server):
        return jnp.zeros(clients)

    def inquire(self, server):
        return server.luck

    def prepare(self, clients, seen):
        return clients + 1.0

    def probe(self, model, down, clients, batches, keys):
        def both(x, y, share):
            return jnp.stack([jnp.sum(share > 0) * 1.0, jnp.sum(share @ x.reshape(len(y), -1))])

        return over_rows(both, batches)

    def weigh(self, server, seen, cohort, key):
        chosen = (cohort.clients % 2 == 0) & (cohort.weights > 0) & (not self.idle)
        reports = server.reports.at[cohort.clients].add(seen, mode="drop")
        return Server(server.model, reports, jax.random.uniform(key)), chosen / jnp.maximum(jnp.sum(chosen), 1)

    def broadcast(self, server):
        return server.model, server.luck

    def start(self, down):
        return down[0]

    def direction(self, loss, gradient, point, down, client):
        return gradient

    def iterate(self, server):
        return server.model

    def aggregate(self, server, up, cohort):
        return server._replace(model=super().aggregate(None, up, cohort))


def ragged():
    """Three clients with 1, 4 and 7 rows of two features."""
    rng = np.random.default_rng(0)
    return fh.data.Clients.from_splits((rng.normal(size=(12, 2)), np.zeros(12), np.repeat([0, 1, 2], [1, 4, 7])))


def test_a_probe_sees_each_row_once_whatever_the_mini_batch():
    clients, law = ragged(), fh.availability.Independent([0.6, 0.5, 0.4])
    model = fh.models.Functional(lambda key: jnp.zeros(2), lambda w, x, y: (x @ w) ** 2)
    simulation = begin(Probing(), model, clients, law, rounds=20, batch_size=2, evaluate_on=())
    simulation.run(None, False, False)
    came = law.schedule(0, 0, 20).sum(axis=0)
    x, _ = clients.rows("train")
    means = [x[:1].mean(axis=0).sum(), x[1:5].mean(axis=0).sum(), x[5:].mean(axis=0).sum()]
    np.testing.assert_allclose(simulation.state.server.reports[:, 0], came * [1, 4, 7], rtol=1e-6)
    np.testing.assert_allclose(simulation.state.server.reports[:, 1], came * means, rtol=1e-5)


def test_clients_of_weight_zero_do_not_train_and_keep_their_state():
    simulation = finished(Probing(step=STEP), LAW, rounds=ROUNDS)
    came = LAW.schedule(0, 0, ROUNDS)
    trained = came & (np.arange(COUNT) % 2 == 0)
    run = simulation.result()
    np.testing.assert_array_equal(np.stack(np.nonzero(trained)), run.participation.to_numpy().T)
    np.testing.assert_array_equal(simulation.state.clients, trained.sum(axis=0))
    assert run.counts["uploads"] == trained.sum()
    assert run.counts["probes"] == came.sum()
    assert run.counts["empty_rounds"] == (~trained.any(axis=1)).sum()


def test_when_nobody_trains_the_server_keeps_what_it_learnt_from_reports_alone():
    simulation = finished(Probing(step=STEP, idle=True), LAW, rounds=ROUNDS)
    assert float(simulation.state.server.model) == 0.0
    np.testing.assert_array_equal(simulation.state.server.reports[:, 0], LAW.schedule(0, 0, ROUNDS).sum(axis=0))
    assert simulation.result().counts["uploads"] == 0


def test_an_empty_round_is_the_identity():
    simulation = finished(Probing(step=STEP), fh.availability.Subsets({(): 1 - 1e-9, (0,): 1e-9}, clients=COUNT), 5)
    assert same(simulation.state.server, simulation.algorithm.init_server(simulation.start))


def test_the_servers_draw_depends_on_seed_and_round_alone():
    def luck(rounds, seed=0, law=LAW, step=STEP):
        return float(finished(Probing(step=step), law, rounds, seed=seed).state.server.luck)

    assert luck(5, law=fh.availability.Everyone()) == luck(5, step=0.5 * STEP)
    assert len({luck(5), luck(6), luck(5, seed=1)}) == 3


def test_only_what_the_inquiry_did_not_say_is_sent_again():
    """The inquiry is the number drawn last time; the broadcast is the model and the number drawn now."""
    costs = finished(Probing(step=STEP), LAW, 1).costs
    assert (costs["probe_downlink"], costs["downlink"]) == (1, 3)
    assert (costs["probe_uplink"], costs["uplink"], costs["client_state"]) == (2, 1, 1)
    assert "probe_uplink" not in finished(fh.algorithms.FedAvg(step=STEP), LAW, 1).costs


FAULTS = fh.simulation.Faults(lost=0.2, forgets=0.3)
MIXED = fh.algorithms.AgnosticFL(fh.algorithms.FedAvg(step=STEP), dual_step=0.1)
OPTIONS = {"rounds": ROUNDS, "local_steps": 3, "batch_size": None, "evaluate_every": 16, "faults": FAULTS}


def test_loops_agree():
    clients, model = parabolas()
    loops = {loop: begin(MIXED, model, clients, LAW, loop=loop, **OPTIONS) for loop in ("compiled", "host")}
    compiled, host = (simulation.run(None, False, False) for simulation in loops.values())
    swept = fh.sweep(MIXED, model, clients, LAW, seeds=(1, 0), **OPTIONS)[1]
    for other in (host, swept):
        np.testing.assert_allclose(jax.tree.leaves(other.params), jax.tree.leaves(compiled.params), atol=1e-6)
        assert other.participation.equals(compiled.participation)
        assert other.counts == compiled.counts


def test_a_run_that_is_broken_off_and_resumed_is_the_same(tmp_path, monkeypatch):
    clients, model = parabolas()
    arguments = (MIXED, model, clients, LAW)
    whole = fh.simulate(*arguments, progress=False, **OPTIONS)
    monkeypatch.setattr(driver, "CHECKPOINT_SECONDS", 0.0)
    accept = driver.Simulation.accept

    def broken(self, *results):
        accept(self, *results)
        if self.done == 32:
            raise KeyboardInterrupt

    monkeypatch.setattr(driver.Simulation, "accept", broken)
    with pytest.raises(KeyboardInterrupt):
        fh.simulate(*arguments, checkpoint=tmp_path, progress=False, **OPTIONS)
    monkeypatch.setattr(driver.Simulation, "accept", accept)
    resumed = fh.simulate(*arguments, checkpoint=tmp_path, progress=False, **OPTIONS)
    assert same(resumed.params, whole.params)
    pd.testing.assert_frame_equal(resumed.history, whole.history, check_exact=True)
    assert resumed.counts == whole.counts
    assert resumed.participation.equals(whole.participation)


@pytest.mark.parametrize("client", [(1e30, 1e6), (1e19, 1e9)], ids=["report overflows", "upload overflows"])
def test_non_finite_reports_and_uploads_are_left_out(client):
    """Client 0 has the largest loss of all; whoever else is chosen goes on without it."""
    _, model = parabolas()
    rows = np.array([client, (4.0, 1.0), (4.0, 1.0)])
    clients = fh.data.Clients.from_splits((rows, np.zeros(3), np.arange(3)))
    algorithm = fh.algorithms.PowerOfChoice(fh.algorithms.FedAvg(step=STEP), size=2)
    run = fh.simulate(
        algorithm, model, clients, fh.availability.Everyone(), rounds=6, batch_size=None, on_nonfinite="skip",
        evaluate_on=(), progress=False,
    )  # fmt: skip
    counts = (run.counts["skipped_reports"], run.counts["skipped_uploads"])
    assert counts == ((6, 0) if client[0] == 1e30 else (0, 6))
    assert float(run.params) == pytest.approx(1 - (1 - 4 * STEP) ** 30, abs=1e-5)


def test_a_non_finite_report_does_not_spoil_what_the_server_keeps():
    _, model = parabolas()
    rows = np.array([(1e30, 1e6), (4.0, 1.0), (2.0, -1.0)])
    clients = fh.data.Clients.from_splits((rows, np.zeros(3), np.arange(3)))
    arguments = (fh.algorithms.AgnosticFL(dual_step=0.1), model, clients, fh.availability.Everyone())
    options = {"rounds": 6, "batch_size": None, "evaluate_on": (), "progress": False}
    run = fh.simulate(*arguments, on_nonfinite="skip", **options)
    assert (run.counts["skipped_reports"], run.counts["skipped_uploads"]) == (6, 0)
    assert np.isfinite(float(run.params))


A = fh.algorithms


@pytest.mark.parametrize(
    ("kind", "loop"), [(A.DRFA, "compiled"), (A.DRFA, "host"), (A.AgnosticFL, "compiled"), (A.ScaffPD, "compiled")]
)
def test_a_report_that_is_not_finite_stops_the_run_and_is_named(kind, loop):
    """From round 2 on, when client 1 comes for the first time; every upload before is finite."""
    _, model = parabolas()
    rows = np.array([(2.0, 1.0), (1e30, 1e6), (2.0, -1.0)])
    clients = fh.data.Clients.from_splits((rows, np.zeros(3), np.arange(3)))
    law = fh.availability.Trace(np.array([[1, 0, 1], [1, 0, 1], [1, 1, 1]], dtype=bool))
    options = {"rounds": 5, "batch_size": None, "evaluate_on": (), "progress": False, "loop": loop}
    with pytest.raises(fh.Diverged, match=f"{kind.name}, round 2, client 1 .*: its report is not finite") as caught:
        fh.simulate(kind(), model, clients, law, **options)
    assert (caught.value.round, caught.value.client) == (2, 1)


# Single precision cannot hold such a step, which JAX warns of.
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize(
    ("kind", "on_nonfinite"), [(A.DRFA, "skip"), (A.DRFA, "stop"), (A.AgnosticFL, "stop"), (A.ScaffPD, "stop")]
)
def test_a_dual_step_beyond_single_precision_stops_the_run(kind, on_nonfinite):
    for dual_step, shown in ((1e39, r"1e\+39"), (1e308, r"1e\+308")):
        with pytest.raises(fh.Diverged, match=f"from the reports is not finite.* dual_step is {shown}"):
            finished(
                kind(dual_step=dual_step), fh.availability.Everyone(), rounds=5, count=3, on_nonfinite=on_nonfinite
            )


@pytest.mark.parametrize("kind", [A.DRFA, A.AgnosticFL])
def test_a_large_dual_step_puts_all_weight_on_the_worst_client(kind):
    simulation = finished(kind(dual_step=1e36), fh.availability.Everyone(), rounds=1)
    server = simulation.state.server
    weights = server.weights if kind is A.DRFA else server.own
    np.testing.assert_array_equal(weights, np.eye(len(weights))[losses(0.0).argmax()])


@traced
@dataclasses.dataclass(frozen=True)
class Remembering(FirstOrder):
    """A report without a decision: clients add the loss that they report to what they keep."""

    name: ClassVar[str] = "Remembering"

    def init_clients(self, clients, server):
        return jnp.zeros(clients)

    def probe(self, model, down, clients, batches, keys):
        return client_losses(model, down, batches)

    def prepare(self, clients, seen):
        return clients + seen

    def direction(self, loss, gradient, point, down, client):
        return gradient


def test_a_report_alone_leaves_weights_and_counts_as_they_are():
    simulation = finished(Remembering(step=STEP), LAW, rounds=ROUNDS)
    plain = finished(fh.algorithms.FedAvg(step=STEP), LAW, rounds=ROUNDS)
    assert same(simulation.result().params, plain.result().params)
    present = LAW.schedule(0, 0, ROUNDS)
    models, _ = replay(present, lambda losses, who: np.ones(len(who)))
    before = np.concatenate([[0.0], models[:-1]])
    expected = sum(row * losses(x) for row, x in zip(present, before, strict=True))
    np.testing.assert_allclose(simulation.state.clients, expected, rtol=1e-4)
    assert simulation.result().counts["probes"] == simulation.result().counts["uploads"] == present.sum()

"""Rounds in which sites are late, away, broken or hostile; and a coordinator that is stopped and started again."""

import jax
import numpy as np
import pytest

import fedhedge as fh
from fedhedge.deployment.coordinator import Coordinator, NotEnoughSites
from fedhedge.deployment.link import Direct
from fedhedge.deployment.parcel import INQUIRE, WORK, Parcel

REASONS = {
    "silent": "no answer within the deadline",
    "transport": "transport: code 2",
    "refuses": "refused: no",
    "nan": "not finite",
    "shape": "has shape",
    "type": "is of type",
    "missing": "arrays missing",
    "huge": "above 1e+06",
    "fingerprint": "another experiment's",
    "round": "another question",
    "someone": "another question",
    "seen": "local_loss",
    "text": "seen is",
}


class Trouble(Direct):
    """Sites of which some are away or do harm. plan: (round, site) -> what goes wrong there."""

    def __init__(self, sites, plan, kinds=(WORK,)):
        super().__init__(sites)
        self.plan, self.kinds, self.at, self.asked = plan, kinds, 0, []

    def online(self):
        return [name for name in self.sites if self.plan.get((self.at, name)) != "away"]

    def ask(self, requests, seconds):
        kind = next(iter(requests.values())).kind
        replies = super().ask(requests, seconds)
        if kind not in self.kinds:
            return replies
        number = next(iter(requests.values())).about["round"]
        self.asked.append((number, sorted(requests)))
        found = {name: spoil(reply, self.plan.get((number, name))) for name, reply in replies.items()}
        self.at = number + 1
        return {name: reply for name, reply in found.items() if reply is not None}


def spoil(reply, how):
    arrays, about = dict(reply.arrays), dict(reply.about)
    name = sorted(arrays)[0] if arrays else ""
    if how is None or how == "away":
        return reply
    if how == "silent":
        return None
    if how == "transport":
        return "code 2: RuntimeError"
    if how == "refuses":
        return Parcel("refused", about | {"reason": "no"})
    if how in ("nan", "huge"):
        arrays[name] = np.full_like(arrays[name], np.nan if how == "nan" else 1e30)
    if how == "shape":
        arrays[name] = arrays[name][:0]
    if how == "type":
        arrays[name] = arrays[name].astype(np.float16)
    if how == "missing":
        del arrays[name]
    about |= {"fingerprint": "f"} if how == "fingerprint" else {}
    about |= {"round": 99} if how == "round" else {}
    about |= {"site": "someone"} if how == "someone" else {}
    about |= {"seen": {"local_loss": float("inf")}} if how == "seen" else {}
    about |= {"seen": "x"} if how == "text" else {}
    return Parcel(reply.kind, about, arrays)


def leaves(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


@pytest.mark.slow
def test_every_kind_of_harm_is_left_out_and_named(small, tmp_path):
    content = small.content({"name": "FedAvg"}, rounds=len(REASONS) + 1, evaluate_every=100, evaluate_on=[])
    federation = small.federation(content)
    link = Trouble(small.sites(federation, tmp_path), {(at, "north"): how for at, how in enumerate(REASONS)})
    coordinator = Coordinator(federation, link, tmp_path / "server", lambda line: None)
    run = coordinator.run()
    table = coordinator.progress.attendance.frame()
    north = table[table["site"] == "north"].reset_index(drop=True)
    for at, reason in enumerate(REASONS.values()):
        assert reason in north["failure"][at]
    assert north["used"].tolist() == [False] * len(REASONS) + [True]
    assert north["answered"].tolist() == [False] + [True] * len(REASONS)
    assert table.loc[table["site"] != "north", "used"].all()
    assert run.counts == {
        "rounds": len(REASONS) + 1,
        "empty_rounds": 0,
        "uploads": 3 * (len(REASONS) + 1) - len(REASONS),
        "skipped_uploads": len(REASONS),
    }
    assert all(np.isfinite(leaf).all() for leaf in leaves(run.params))


@pytest.mark.slow
def test_lost_uploads_are_those_of_a_simulation_with_the_same_losses(small, tmp_path):
    """SCAFFOLD with uploads that get lost: only sites that committed what was used end where the simulation does."""
    content = small.content({"name": "Scaffold"}, rounds=8, evaluate_on=[], evaluate_every=100)
    federation = small.federation(content)
    faults = fh.Faults(lost=0.5)
    lost, _ = faults.schedule(0, 0, 8, 3)
    assert lost.any(axis=1).sum() > 4
    plan = {(at, site): "silent" for at in range(8) for n, site in enumerate(federation.terms.sites) if lost[at, n]}
    run = Coordinator(federation, Trouble(small.sites(federation, tmp_path), plan), tmp_path, lambda line: None).run()
    simulated = small.simulated(content | {"faults": {"lost": 0.5}})
    for a, b in zip(leaves(run.params), leaves(simulated.params), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def test_short_and_empty_rounds(small, tmp_path):
    content = small.content({"name": "FedAvg"}, rounds=4, evaluate_every=100, evaluate_on=[])
    federation = small.federation(content, patience=0.05)
    sites = federation.terms.sites
    plan = {(1, "east"): "away"} | {(2, site): "silent" for site in sites}
    coordinator = Coordinator(federation, Trouble(small.sites(federation, tmp_path), plan), tmp_path, lambda line: None)
    run = coordinator.run()
    assert run.participation.groupby("round")["client"].apply(list).to_dict() == {0: [0, 1, 2], 1: [1, 2], 3: [0, 1, 2]}
    assert run.counts["empty_rounds"] == 1
    assert run.counts["skipped_uploads"] == 3
    table = coordinator.progress.attendance.frame().set_index(["round", "site"])
    assert not table.loc[(1, "east"), "online"]
    np.testing.assert_allclose(run.inclusion_probabilities, [0.5, 0.75, 0.75])
    # The mean of 1/|S| over rounds, over its sum: 2/3, and 2/3 + 1/2 for the two others.
    np.testing.assert_allclose(run.weights, np.array([4, 7, 7]) / 18)


class Stopped(RuntimeError):
    pass


class Breaks(Direct):
    """A link over which the coordinator is stopped: before, or after, the sites answer question number `at`."""

    def __init__(self, sites, at, after):
        super().__init__(sites)
        self.left, self.after = at, after

    def ask(self, requests, seconds):
        self.left -= 1
        if self.left == 0 and not self.after:
            raise Stopped
        replies = super().ask(requests, seconds)
        if self.left == 0:
            raise Stopped
        return replies


@pytest.mark.parametrize("name", ["Scaffold", pytest.param("ScaffPD", marks=pytest.mark.deployment)])
def test_a_coordinator_that_was_stopped_goes_on_exactly(small, tmp_path, name):
    content = small.content({"name": name}, rounds=4, evaluate_every=2)
    federation = small.federation(content)
    whole = Coordinator(
        federation, Direct(small.sites(federation, tmp_path / "a")), tmp_path / "a", lambda _: None
    ).run()
    for at, after in ((1, True), (3, False), (4, True), (6, False)):
        folder = tmp_path / f"{at}-{after}"
        sites = small.sites(federation, folder)
        with pytest.raises(Stopped):
            Coordinator(federation, Breaks(sites, at, after), folder, lambda _: None).run()
        # Sites were restarted as well.
        resumed = Coordinator(federation, Direct(small.sites(federation, folder)), folder, lambda _: None).run()
        for a, b in zip(leaves(resumed.params), leaves(whole.params), strict=True):
            np.testing.assert_array_equal(a, b)
        assert resumed.participation.equals(whole.participation)
        assert resumed.history.equals(whole.history)


def test_a_checkpoint_of_another_federation_is_refused(small, tmp_path):
    federation = small.federation(small.content({"name": "FedAvg"}, rounds=1, evaluate_on=[]))
    Coordinator(federation, Direct(small.sites(federation, tmp_path)), tmp_path, lambda _: None).run()
    other = small.federation(small.content({"name": "FedAvg", "step": 0.2}, rounds=1, evaluate_on=[]))
    with pytest.raises(fh.CheckpointMismatch, match=r"algorithm\.step is 0.1 there and 0.2 here"):
        Coordinator(other, Direct({}), tmp_path, lambda _: None).run()


def test_nobody_comes(small, tmp_path):
    federation = small.federation(small.content({"name": "FedAvg"}), enrolment=0.05)
    with pytest.raises(NotEnoughSites, match="0 sites enrolled, and 1"):
        Coordinator(federation, Direct({}), tmp_path, lambda _: None).run()


@pytest.mark.slow
def test_reports_that_do_harm(small, tmp_path):
    content = small.content({"name": "PowerOfChoice", "size": 2}, rounds=3, evaluate_every=100, evaluate_on=[])
    federation = small.federation(content)
    plan = {(0, "south"): "nan", (1, "east"): "silent", (2, "north"): "shape"}
    link = Trouble(small.sites(federation, tmp_path), plan, kinds=(INQUIRE,))
    coordinator = Coordinator(federation, link, tmp_path, lambda _: None)
    run = coordinator.run()
    assert run.counts["skipped_reports"] == 3
    assert run.participation.groupby("round")["client"].apply(list).to_dict() == {0: [0, 1], 1: [1, 2], 2: [0, 2]}

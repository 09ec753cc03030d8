"""Rounds whose uploads are added up unseen: the mean of those who stay, whatever happens in between."""

import json
import stat
from functools import cache

import jax
import numpy as np
import pytest

pytest.importorskip("cryptography", reason="cryptography (extra `flower`) is not installed")
import fedhedge as fh
from fedhedge.availability import Trace
from fedhedge.checks import InvalidInput
from fedhedge.config.config import Config
from fedhedge.deployment.budget import begin_budget, open_budget
from fedhedge.deployment.coordinator import Coordinator
from fedhedge.deployment.keys import load_private, load_public, make_site_keys
from fedhedge.deployment.link import Direct
from fedhedge.deployment.masking import Signing
from fedhedge.deployment.masking_terms import Vector
from fedhedge.deployment.parcel import (
    ADVERTISE,
    AGREE,
    DONE,
    MASK,
    REFUSED,
    SHARE,
    UNMASK,
    WORK,
    Parcel,
    pack,
    unpack,
)
from fedhedge.privacy import Privacy

TRIPS = (ADVERTISE, SHARE, MASK, AGREE, UNMASK)
OPEN = {"signed": False}
FEDERAGE = {"name": "FedeRage", "cap": 5.0, "alpha": 0.5}
ADMM = ({"name": "DpDroAdmm", "rounds": 6, "noise": 0.0}, {"local_steps": 1, "batch_size": "all"})


def federation(small, algorithm=None, model="Linear", masking=OPEN, patience=0.05, **top):
    content = small.content(algorithm or {"name": "FedAvg"}, model, **{"evaluate_on": [], "rounds": 3} | top)
    terms = {} if masking is None else {"masking": masking}
    return small.federation(content, **terms, patience=patience, deadline=0.5)


def admm(small, **options):
    return federation(small, ADMM[0], "CrammerSinger", **ADMM[1], **options)


def leaves(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def same(left, right, tolerance):
    for a, b in zip(leaves(left), leaves(right), strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def run(of, link, folder, **more):
    coordinator = Coordinator(of, link, folder, lambda _: None, **more)
    return coordinator.run(), coordinator.progress.attendance.frame()


def simulated(small, of, used):
    """The simulation in which the law is who was used, bool[T, N]."""
    data = {"source": "folder", "path": str(small.folder), "scaling": "none", "label": "kind"}
    settings = {key: value for key, value in of.settings.items() if key not in ("data", "availability")}
    content = settings | {"data": data, "availability": {"name": "Everyone"}}
    return simulation(json.dumps(content), tuple(map(tuple, np.asarray(used, bool).tolist())))


@cache
def simulation(content, used):
    law = Trace(np.array(used))
    return fh.simulate(**Config(json.loads(content), "same").simulation() | {"law": law}, progress=False)


class Watched(Direct):
    """A link that keeps what went over it, and takes replies out or spoils them. plan: (round, kind, site) -> how."""

    def __init__(self, sites, plan=None, away=()):
        super().__init__(sites)
        self.plan, self.away, self.asked, self.replies = plan or {}, set(away), [], []

    def online(self):
        return [name for name in self.sites if name not in self.away]

    def ask(self, requests, seconds):
        one = next(iter(requests.values()))
        self.asked.append((one.about["round"], one.kind))
        found = {}
        for name, request in requests.items():
            how = self.plan.get((one.about["round"], one.kind, name))
            if how == "unheard":
                continue
            reply = self.sites[name].handle(request)
            self.replies.append((one.about["round"], one.kind, name, reply))
            if how != "lost":
                found[name] = reply if how is None else how(reply)
        return found


@pytest.fixture(scope="module")
def signings(tmp_path_factory):
    names = ("east", "north", "south")
    pairs = make_site_keys(tmp_path_factory.mktemp("keys"), names)
    roster = {name: load_public(pair.public) for name, pair in pairs.items()}
    return {name: Signing(load_private(pair.private), roster) for name, pair in pairs.items()}


@pytest.mark.parametrize("name", ["FedAvg", "FedeRage", "DpDroAdmm"])
def test_a_masked_federation_is_the_one_in_the_open(small, tmp_path, name):
    make = {"FedAvg": federation, "FedeRage": lambda small, **o: federation(small, FEDERAGE, **o), "DpDroAdmm": admm}
    masked, plain = make[name](small, evaluate_every=3), make[name](small, masking=None, evaluate_every=3)
    link = Watched(small.sites(masked, tmp_path / "a"))
    mine, _ = run(masked, link, tmp_path / "a")
    theirs, _ = run(plain, Direct(small.sites(plain, tmp_path / "b")), tmp_path / "b")
    assert [kind for _, kind in link.asked if kind in TRIPS] == [ADVERTISE, SHARE, MASK, UNMASK] * 3
    same(mine.params, theirs.params, 1e-6)
    same(mine.average_params, theirs.average_params, 1e-6)
    key = ["round", "client", "split", "metric"]
    tables = [r.history.sort_values(key).reset_index(drop=True) for r in (mine, theirs)]
    np.testing.assert_allclose(tables[0]["value"], tables[1]["value"], rtol=1e-5, atol=1e-6)
    same(mine.params, simulated(small, plain, np.ones((3, 3), bool)).params, 2e-5)


def test_signed_sums(small, tmp_path, signings):
    of = federation(small, masking={})
    sites = {name: small.site(name, of, tmp_path, signing=signings[name]) for name in signings}
    link = Watched(sites)
    mine, _ = run(of, link, tmp_path, roster=signings["east"].roster)
    assert [kind for _, kind in link.asked if kind in TRIPS] == list(TRIPS) * 3
    same(mine.params, simulated(small, of, np.ones((3, 3), bool)).params, 2e-5)
    with pytest.raises(InvalidInput, match="peers"):
        small.site("north", of, tmp_path / "without keys")


def test_no_upload_is_seen(small, tmp_path):
    """What arrives is not the upload, nor near it, and neither is it the same in two sessions of one upload."""
    of = federation(small, rounds=1)
    vector, masked = Vector(of.programme), []
    for attempt in range(2):
        link = Watched(small.sites(of, tmp_path / f"{attempt}"))
        run(of, link, tmp_path / f"{attempt}")
        replies = [reply for _, kind, name, reply in link.replies if (kind, name) == (MASK, "north")]
        # Nothing else of the round is told in the clear.
        assert {key for reply in replies for key in reply.about} == {"as_acknowledged", "site", "fingerprint", "round"}
        message = replies[0].arrays["message"].tobytes()
        masked.append(np.frombuffer(message.partition(b"\n")[2], "<u8"))
    plain = small.site("north", federation(small, rounds=1, masking=None), tmp_path / "plain")
    programme = plain.programme
    down = pack(programme.algorithm.broadcast(programme.likes.server), "down")
    about = {"fingerprint": plain.fingerprint, "experiment": "a", "round": 0, "acknowledged": -1}
    reply = plain.handle(Parcel(WORK, about, down))
    clear = vector.join(unpack(programme.likes.up, reply.arrays, "up"), reply.about["seen"])
    residues = np.rint(clear * 2.0**30).astype(np.int64).view("<u8")
    assert len(residues) == len(masked[0]) == len(masked[1]) == vector.length
    for seen in (masked[0], masked[1], masked[0] - masked[1]):
        # Uniform over 64 bits: no entry is as small as those of an upload are, and none is the upload's.
        assert not (seen == residues).any()
        assert (np.minimum(seen, -seen) > 2**40).all()


def refused(reply):
    return Parcel(REFUSED, {**reply.about, "reason": "no"})


def spoiled(change):
    def how(reply):
        return Parcel(DONE, reply.about, {"message": change(reply.arrays["message"])})

    return how


HARM = {
    "lost": "lost",
    "unheard": "unheard",
    "refuses": refused,
    "cut": spoiled(lambda message: message[:-8]),
    "garbage": spoiled(lambda message: np.arange(200, dtype=np.uint8)),
    "floats": spoiled(lambda message: message.astype(np.float64)),
    "missing": lambda reply: Parcel(DONE, reply.about, {}),
}


@pytest.mark.parametrize("kind", [ADVERTISE, SHARE, MASK, UNMASK])
def test_who_is_lost_in_a_trip_is_left_out_alone(small, tmp_path, kind):
    """Each kind of harm in a round of its own: the sum is that of the others, and the rounds after it have everyone."""
    of = federation(small, rounds=len(HARM) + 1)
    plan = {(at, kind, "north"): how for at, how in enumerate(HARM.values())}
    mine, table = run(of, Watched(small.sites(of, tmp_path), plan), tmp_path)
    used = table.pivot(index="round", columns="client", values="used").to_numpy()
    expected = np.ones((len(HARM) + 1, 3), bool)
    # After its masked upload came, a site is in the sum whether it is there at the end or not.
    expected[:-1, 1] = kind == UNMASK
    np.testing.assert_array_equal(used, expected)
    assert (table.loc[table["used"], "failure"] == "").all()
    reasons = table.loc[~table["used"], "failure"].tolist()
    assert all(reasons)
    if kind == MASK:
        assert reasons[2:4] == ["masked: refused: no", f"masked: upload of 'north': {8 * 12} bytes, not {8 * 13}"]
    same(mine.params, simulated(small, of, expected).params, 2e-5)


def test_below_the_threshold_a_round_is_void(small, tmp_path):
    of = federation(small, rounds=4)
    plan = {(1, MASK, "north"): "lost", (1, MASK, "south"): "lost", (2, UNMASK, "east"): "lost"}
    plan |= {(2, UNMASK, "north"): refused}
    mine, table = run(of, Watched(small.sites(of, tmp_path), plan), tmp_path)
    used = table.pivot(index="round", columns="client", values="used").to_numpy()
    np.testing.assert_array_equal(used, np.array([[1, 1, 1], [0, 0, 0], [0, 0, 0], [1, 1, 1]], bool))
    failures = table.set_index(["round", "site"])["failure"]
    assert failures[1, "east"] == "no sum: masked uploads: 1 of 3 clients, and 2 are needed"
    assert failures[2, "south"] == "no sum: survivors that revealed shares: 1 of 3 clients, and 2 are needed"
    assert failures[2, "north"] == "revealed: refused: no"
    same(mine.params, simulated(small, of, used).params, 2e-5)


def test_two_sites_are_too_few(small, tmp_path):
    of = federation(small, rounds=2)
    link = Watched(small.sites(of, tmp_path))
    # In the first round, after the enrolment and before the first question of the second, everyone is there.
    with pytest.raises(Stopped):
        run(of, Broken(link, 1 + 4 + 1, before=True), tmp_path)
    link.away = {"north"}
    mine, table = run(of, link, tmp_path)
    assert mine.counts["empty_rounds"] == 1
    assert set(table.loc[(table["round"] == 1) & table["online"], "failure"]) == {
        "no sum: it takes 3 sites, and 2 could be asked"
    }
    assert not table.loc[table["round"] == 1, "asked"].any()


def test_an_upload_that_makes_the_sum_huge_voids_the_round(small, tmp_path):
    of = federation(small, rounds=2)

    def bad(message):
        line, _, payload = message.tobytes().partition(b"\n")
        return np.frombuffer(line + b"\n" + np.random.default_rng(0).bytes(len(payload)), np.uint8)

    plan = {(0, MASK, "north"): spoiled(bad)}
    mine, table = run(of, Watched(small.sites(of, tmp_path), plan), tmp_path)
    assert table.loc[table["round"] == 0, "failure"].str.contains("the mean of the round: norm .* above 1e").all()
    same(mine.params, simulated(small, of, [[0, 0, 0], [1, 1, 1]]).params, 2e-5)


def test_a_site_holds_its_upload_against_largest_norm_and_tells_no_norm(small, tmp_path):
    content = small.content({"name": "FedAvg"}, evaluate_on=[], rounds=1)
    of = small.federation(content, masking=OPEN, largest_norm=1e-3, patience=0.05)
    _, table = run(of, Direct(small.sites(of, tmp_path)), tmp_path)
    assert set(table["failure"]) == {"masked: refused: an upload of a norm above largest_norm"}


class Stopped(RuntimeError):
    pass


class Broken:
    """A link that breaks after so many questions; the sites had answered the last one."""

    def __init__(self, link, left, before=False):
        self.link, self.left, self.before = link, left, before

    def online(self):
        return self.link.online()

    def ask(self, requests, seconds):
        self.left -= 1
        if self.left == 0 and self.before:
            raise Stopped
        replies = self.link.ask(requests, seconds)
        if self.left == 0:
            raise Stopped
        return replies


class Restarted(Direct):
    """Sites that are started afresh from their folders before each question."""

    def __init__(self, make):
        super().__init__(make())
        self.make = make

    def ask(self, requests, seconds):
        self.sites = self.make()
        return super().ask(requests, seconds)


def test_sites_that_restart_between_all_trips(small, tmp_path):
    of = federation(small, {"name": "Scaffold"})
    whole, _ = run(of, Direct(small.sites(of, tmp_path / "a")), tmp_path / "a")
    mine, table = run(of, Restarted(lambda: small.sites(of, tmp_path / "b")), tmp_path / "b")
    assert table["used"].all()
    same(mine.params, whole.params, 0.0)
    for path in (tmp_path / "b").glob("*/masking-*.json"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        # After the end no secret is kept, and what was opened is.
        assert json.loads(path.read_text()) == {"opened": 2}


@pytest.mark.parametrize("trip", range(4))
def test_a_coordinator_that_was_stopped_in_a_trip(small, tmp_path, trip):
    """The round is done again with the same uploads, unless it was opened: then it is void, and nobody counts it."""
    of = federation(small, {"name": "Scaffold"})
    # After the enrolment and the four trips of the first round.
    with pytest.raises(Stopped):
        run(of, Broken(Direct(small.sites(of, tmp_path)), 5 + 1 + trip), tmp_path)
    link = Watched(small.sites(of, tmp_path))
    mine, table = run(of, link, tmp_path)
    used = np.ones((3, 3), bool)
    if trip == 3:
        used[1] = False
        reasons = table.loc[table["round"] == 1, "failure"]
        assert reasons.str.startswith("refused: round 1 was opened here").all()
        assert [kind for number, kind in link.asked if number == 1 and kind in TRIPS] == [ADVERTISE]
    np.testing.assert_array_equal(table.pivot(index="round", columns="client", values="used"), used)
    same(mine.params, simulated(small, of, used).params, 2e-5)


def test_a_site_that_opened_a_round_never_masks_for_it_again(small, tmp_path):
    of = federation(small)
    link = Watched(small.sites(of, tmp_path))
    with pytest.raises(Stopped):
        run(of, Broken(link, 5), tmp_path)
    site = link.sites["north"]
    path = next((tmp_path / "north").glob("masking-*.json"))
    name = path.stem.rpartition("-")[2]
    about = {"fingerprint": of.fingerprint, "experiment": name, "acknowledged": -1, "attempt": 7}
    about |= {"clients": ["east", "north", "south"]}
    assert "was opened here" in site.handle(Parcel(ADVERTISE, about | {"round": 0})).about["reason"]
    assert site.handle(Parcel(ADVERTISE, about | {"round": 1})).kind == DONE
    assert "begun already" in site.handle(Parcel(ADVERTISE, about | {"round": 1})).about["reason"]
    assert "of another session" in site.handle(Parcel(SHARE, about | {"round": 1, "attempt": 8})).about["reason"]
    strange = about | {"round": 1, "attempt": 9, "clients": ["east", "north", "west"]}
    assert "others than the sites" in site.handle(Parcel(ADVERTISE, strange)).about["reason"]
    few = about | {"round": 1, "attempt": 9, "clients": ["east", "north"]}
    assert "3 or more" in site.handle(Parcel(ADVERTISE, few)).about["reason"]
    for kind in (WORK, "inquire"):
        assert "no place in what was agreed" in site.handle(Parcel(kind, about | {"round": 1})).about["reason"]


def test_the_ledger_is_charged_once_and_before_anything_leaves(small, tmp_path):
    content = small.content({"name": "DpDroAdmm"}, "CrammerSinger", rounds=3, local_steps=1, batch_size="all")
    content |= {"privacy": {"epsilon": 4.0, "delta": 1e-3}, "evaluate_on": []}
    bounds = {name: [-4.0, 6.0] for name in ("u", "v", "w")}
    of = small.federation(content, features=bounds, masking=OPEN, patience=0.05)
    rng = np.random.default_rng(0)
    owner = {"methods": ("DpDroAdmm",), "row_bound": 1.0, "least_noise": 1.0, "budget": Privacy(4.0, 1e-3)}
    guards = {}
    for name in ("east", "north", "south"):
        begin_budget(tmp_path / name, owner, of, name, 15)
        guards[name] = open_budget(tmp_path / name, owner, of, name, 15, ())

    def noise(shape, scale):
        return rng.normal(scale=scale, size=shape)

    def sites():
        return {name: small.site(name, of, tmp_path, guards[name], noise) for name in guards}

    charges = []

    class Counting(Watched):
        def ask(self, requests, seconds):
            replies = super().ask(requests, seconds)
            if next(iter(requests.values())).kind in (SHARE, MASK):
                charges.append([guard.statement()["charges"] for guard in guards.values()])
            return replies

    # The coordinator stops after the masked uploads of the first round came: nothing is charged twice for that.
    with pytest.raises(Stopped):
        run(of, Broken(Counting(sites()), 4), tmp_path)
    _, table = run(of, Counting(sites()), tmp_path)
    assert table["used"].all()
    assert charges == [[n] * 3 for n in (0, 1, 1, 1, 1, 2, 2, 3)]
    for guard in guards.values():
        assert guard.statement()["epsilon"] == pytest.approx(4.0, rel=1e-6)
        guard.close()

"""A private method at a site: noise from outside the seed, on a grid, charged once, refused when the budget ends."""

import shutil

import numpy as np
import pytest

from fedhedge.checks import InvalidInput
from fedhedge.cli import main
from fedhedge.deployment import tables
from fedhedge.deployment.budget import NoBudget, begin_budget, open_budget
from fedhedge.deployment.coordinator import Coordinator
from fedhedge.deployment.grid_noise import GridNoise
from fedhedge.deployment.link import Direct
from fedhedge.deployment.parcel import REFUSED, WORK, Parcel, pack
from fedhedge.deployment.site import Site
from fedhedge.deployment.site_file import load_site
from fedhedge.deployment.site_guard import Refused
from fedhedge.privacy import Privacy
from fedhedge.simulation.arithmetic import arithmetic

ROUNDS = 5
FEDERATION = """\
rounds = 5
local_steps = 1
batch_size = "all"
data = {label = "kind"}
model = {name = "CrammerSinger"}
algorithm = {name = "DpDroAdmm"}
privacy = {epsilon = 4.0, delta = 1e-3}

[federation]
sites = ["east", "north", "south"]
classes = ["adelie", "chinstrap", "gentoo"]
features = BOUNDS
"""
SITE = """\
site = "north"
federation = "federation.toml"
table = "TABLE"
state = "state"
server = "127.0.0.1:1"
certificate = "ca.crt"
key = "north"
anchor = "safe/north.anchor"
accept = {epsilon = 4.0, delta = 1e-3, methods = ["DpDroAdmm"], row_bound = 1.0, least_noise = 1.0}
"""
BOUNDS = {"u": [-4.0, 6.0], "v": [-4.0, 6.0], "w": [-4.0, 6.0]}


@pytest.fixture
def private(small):
    content = small.content({"name": "DpDroAdmm"}, "CrammerSinger", rounds=ROUNDS, local_steps=1, batch_size="all")
    content |= {"privacy": {"epsilon": 4.0, "delta": 1e-3}, "evaluate_on": []}
    return small.federation(content, features=BOUNDS, constant=0.5, deadline=0.5)


class Drawn:
    """Noise that a test can look at: multiples of a fine grid."""

    def __init__(self, seed=0):
        self.rng, self.scales = np.random.default_rng(seed), []

    def __call__(self, shape, scale):
        self.scales.append(scale)
        spacing = 2.0 ** (np.floor(np.log2(scale)) - 30)
        return np.round(self.rng.normal(scale=scale, size=shape) / spacing) * spacing


def accepted(epsilon=4.0, **other):
    owner = {"methods": ("DpDroAdmm",), "row_bound": 1.0, "least_noise": 1.0} | other
    return {"budget": Privacy(epsilon, 1e-3), **owner}


@pytest.fixture
def opened(small, private, tmp_path):
    """A site with a ledger; the caller closes it."""
    made = []

    def make(name="north", gaussian=None, **owner):
        for before in made:
            before.guard.close()
        rows = tables.read(small.folder / f"{name}.csv", private, name)
        count = int(rows.counts("train")[0])
        if name not in [site.name for site in made]:
            begin_budget(tmp_path / name, accepted(**owner), private, name, count)
        guard = open_budget(tmp_path / name, accepted(**owner), private, name, count, ())
        made.append(Site(private, name, rows, tmp_path / name, guard, gaussian or Drawn()))
        return made[-1]

    yield make
    for site in made:
        site.guard.close()


def asked(federation, number, acknowledged=-1, scale=1.0):
    programme = federation.programme
    with arithmetic("float64"):
        down = pack(programme.algorithm.broadcast(programme.likes.server), "down")
    about = {"fingerprint": federation.fingerprint, "experiment": "a1", "round": number, "acknowledged": acknowledged}
    return Parcel(WORK, about, {name: array + scale - 1.0 for name, array in down.items()})


def test_noise_comes_from_the_source_given_and_has_the_deviations_of_the_method(private, opened):
    drawn = Drawn()
    site = opened(gaussian=drawn)
    reply = site.handle(asked(private, 0))
    worker, algorithm = site.worker, private.algorithm
    with arithmetic("float64"):
        state = site.worker.initial()
        rows = float(len(worker.pool.labels))
        client = type(state)(*(np.asarray(leaf)[0] for leaf in state))
        deviations = [float(sigma) for sigma in algorithm.deviations(None, client, rows)]
    # Rounding to the grid costs a little more noise.
    np.testing.assert_allclose(drawn.scales, deviations, rtol=1e-6)
    assert all(found >= wanted for found, wanted in zip(drawn.scales, deviations, strict=True))
    other = opened("south", gaussian=Drawn(1)).handle(asked(private, 0))
    assert not np.array_equal(reply.arrays["up"], other.arrays["up"])


def test_what_a_site_releases_lies_on_the_grid(private, opened):
    drawn = Drawn()
    up = opened(gaussian=drawn).handle(asked(private, 0)).arrays["up"]
    spacing = 2.0 ** (np.floor(np.log2(drawn.scales[0])) - 30)
    # The broadcast of the first round is all zeros, so that the upload is the released model itself.
    assert np.array_equal(np.round(up / spacing) * spacing, up)


def test_grid_noise_rounds_what_it_is_added_to():
    with arithmetic("float64"):
        import jax.numpy as jnp

        noise = GridNoise(jnp.array([3.0, -2.0]), jnp.asarray(0.5))
        np.testing.assert_array_equal(jnp.array([0.2, 0.3]) + noise, [3.0, -1.5])
        np.testing.assert_array_equal(jnp.array([0.2, 0.3]) - noise, [-3.0, 2.5])
        assert np.isnan(jnp.array([2.0**60]) + GridNoise(jnp.zeros(1), jnp.asarray(1.0))).all()


def test_a_repeated_question_is_charged_once_and_a_new_one_again(private, opened):
    site = opened()
    first = site.handle(asked(private, 0))
    charges = lambda site: site.guard.statement()["charges"]  # noqa: E731
    assert charges(site) == 1
    again = opened(gaussian=Drawn(5))
    same = again.handle(asked(private, 0))
    assert np.array_equal(first.arrays["up"], same.arrays["up"])
    assert charges(again) == 1
    again.handle(asked(private, 0, scale=1.5))
    assert charges(again) == 2


def test_the_budget_covers_the_rounds_and_no_more(private, opened):
    site = opened()
    for number in range(ROUNDS):
        assert site.handle(asked(private, number, number - 1)).kind == "done"
    refused = site.handle(asked(private, ROUNDS, ROUNDS - 1))
    assert refused.kind == REFUSED
    assert "the budget is epsilon = 4" in refused.about["reason"]
    assert site.guard.statement()["epsilon"] == pytest.approx(4.0, rel=1e-6)


@pytest.mark.parametrize(
    ("owner", "reason"),
    [
        ({"least_noise": 1e3}, "the noise would be"),
        ({"methods": ("DpSgd",)}, "the method 'DpDroAdmm' is not one"),
        ({"row_bound": 0.5}, "the row bound would be 1"),
    ],
)
def test_what_the_owner_did_not_accept_shows_before_the_first_round(opened, owner, reason):
    with pytest.raises(Refused, match=reason):
        opened(**owner)


def test_a_site_whose_budget_ends_is_left_out_and_the_others_go_on(small, private, opened, tmp_path):
    sites = {"north": opened("north", epsilon=2.0)}
    rows = {name: tables.read(small.folder / f"{name}.csv", private, name) for name in ("east", "south")}
    sites |= {name: Site(private, name, rows[name], tmp_path / name, NoBudget(), Drawn()) for name in rows}
    coordinator = Coordinator(private, Direct(sites), tmp_path / "server", lambda line: None)
    run = coordinator.run()
    table = coordinator.progress.attendance.frame()
    north = table[table["site"] == "north"]
    assert 0 < north["used"].sum() < ROUNDS
    assert north["failure"].iloc[-1].startswith("refused: client 'north'")
    assert run.counts["rounds"] == ROUNDS
    assert coordinator.progress.statements["north"]["epsilon"] <= 2.0


def test_a_lost_ledger_is_no_new_budget(small, private, opened, tmp_path):
    site = opened()
    site.handle(asked(private, 0))
    site.guard.close()
    (tmp_path / "north" / "ledger.jsonl").unlink()
    # The ledger's end was noted, which stands in the way of a new one and tells that there was one.
    with pytest.raises(
        Refused, match=r"missing or empty.*from a copy.*remove .*ledger.anchor, which shows that one was"
    ):
        opened()
    (tmp_path / "north" / "ledger.anchor").unlink()
    with pytest.raises(InvalidInput, match=r"state: .*a folder in which no experiment has been.*state-"):
        begin_budget(tmp_path / "north", accepted(), private, "north", 20)
    # Nor is the loss of the whole folder.
    shutil.rmtree(tmp_path / "north")
    with pytest.raises(Refused, match=r"missing or empty"):
        opened()


def test_a_ledger_is_begun_once_and_only_for_a_budget(private, tmp_path):
    begin_budget(tmp_path, accepted(), private, "north", 20)
    with pytest.raises(InvalidInput, match=r"ledger.jsonl.*a ledger is begun only once"):
        begin_budget(tmp_path, accepted(), private, "north", 20)
    with pytest.raises(InvalidInput, match="keeps no ledger"):
        begin_budget(tmp_path / "other", {"no_privacy": True}, private, "north", 20)
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        ({"methods": "DpDroAdmm"}, "accept.methods"),
        ({"row_bound": "x"}, "accept.row_bound"),
        ({"least_noise": 0}, "accept.least_noise"),
        ({"budget": Privacy(4.0, 0.5)}, "accept.delta at site 'north'"),
    ],
)
def test_what_cannot_be_accepted_is_named_with_its_table(private, tmp_path, owner, name):
    with pytest.raises(InvalidInput) as refused:
        begin_budget(tmp_path, accepted() | owner, private, "north", 20)
    assert refused.value.name == name


def test_an_anchor_elsewhere_tells_of_a_folder_that_was_lost(private, tmp_path):
    anchor = tmp_path / "elsewhere" / "anchor"
    begin_budget(tmp_path / "state", accepted(), private, "north", 20, anchor)
    open_budget(tmp_path / "state", accepted(), private, "north", 20, (), anchor).close()
    shutil.rmtree(tmp_path / "state")
    with pytest.raises(InvalidInput, match=r"anchor: .*a ledger is begun only once .*from a copy.*remove the anchor"):
        begin_budget(tmp_path / "state", accepted(), private, "north", 20, anchor)


def test_the_command_begins_the_ledger_that_the_site_asks_for(small, private, tmp_path, capsys):
    bounds = "{" + ", ".join(f"{name} = {ends}" for name, ends in BOUNDS.items()) + "}"
    (tmp_path / "federation.toml").write_text(FEDERATION.replace("BOUNDS", bounds), encoding="utf-8")
    (tmp_path / "north.toml").write_text(SITE.replace("TABLE", str(small.folder / "north.csv")), encoding="utf-8")
    described = load_site(tmp_path / "north.toml")
    with pytest.raises(Refused, match="fedhedge deploy begin"):
        described.open()
    assert main(["deploy", "begin", str(tmp_path / "north.toml")]) == 0
    assert "ledger.jsonl: begun for site north" in capsys.readouterr().out
    described.open().guard.close()
    assert (tmp_path / "safe" / "north.anchor").exists()
    assert main(["deploy", "begin", str(tmp_path / "north.toml")]) == 2
    assert "begun only once" in capsys.readouterr().err

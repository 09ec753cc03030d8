"""What federation.toml and site.toml say, and what is refused."""

import numpy as np
import pytest

from fedhedge.checks import InvalidInput
from fedhedge.config.config import Config
from fedhedge.deployment import tables
from fedhedge.deployment.site_file import load_site
from fedhedge.privacy import calibrate
from fedhedge.privacy.budget import Privacy


def test_a_site_reads_the_rows_that_a_simulation_gives_it(small):
    content = small.content({"name": "FedAvg"})
    federation = small.federation(content)
    data = {"source": "folder", "path": str(small.folder), "label": "kind", "scaling": "none"}
    law = {"name": "Everyone"}
    together = Config(content | {"data": data, "availability": law}, "small").clients
    for number, name in enumerate(federation.terms.sites):
        alone = tables.read(small.folder / f"{name}.csv", federation, name)
        for split in ("train", "validation", "test"):
            for mine, theirs in zip(alone.rows(split), together.rows(split, number), strict=True):
                np.testing.assert_array_equal(mine, theirs)


def test_bounds_bring_features_to_the_unit_interval(small):
    bounds = {"u": [0.0, 2.0], "v": [0.0, 4.0], "w": [-1e9, 1e9]}
    federation = small.federation(small.content({"name": "FedAvg"}), features=bounds, constant=0.5)
    rows = tables.read(small.folder / "east.csv", federation, "east").features
    plain = tables.read(small.folder / "east.csv", small.federation(small.content({"name": "FedAvg"})), "east").features
    np.testing.assert_allclose(rows[:, 0], np.clip(plain[:, 0] - 1.0, -1.0, 1.0))
    np.testing.assert_allclose(rows[:, 1], np.clip(plain[:, 1] / 2.0 - 1.0, -1.0, 1.0))
    assert (rows[:, 3] == 0.5).all()


def test_the_noise_of_a_budget(small):
    top = {"rounds": 20, "local_steps": 1, "batch_size": "all"}
    content = small.content({"name": "DpDroAdmm"}, "CrammerSinger", **top)
    federation = small.federation(content | {"privacy": {"epsilon": 3.0, "delta": 1e-4}})
    wanted = calibrate(Privacy(3.0, 1e-4), 20, lambda_share=0.05)
    assert federation.algorithm.noise == pytest.approx(wanted.model)
    assert federation.algorithm.lambda_noise == pytest.approx(wanted.lambda_)
    assert federation.algorithm.rounds == 20


def test_the_fingerprint_is_that_of_what_sites_agree_upon(small):
    content = small.content({"name": "FedAvg"})
    same = small.federation(content, deadline=7.0, asks="law")
    assert small.federation(content).fingerprint == same.fingerprint
    for other in (
        small.federation(content, constant=0.5),
        small.federation(content, features=["v", "u", "w"]),
        small.federation(content | {"rounds": 7}),
        small.federation(small.content({"name": "FedAvg", "step": 0.3})),
        small.federation(content | {"data": {"label": "kind", "test": 0.3}}),
    ):
        assert other.fingerprint != same.fingerprint


@pytest.mark.parametrize(
    ("terms", "name"),
    [
        ({"sites": []}, "federation.sites"),
        ({"sites": ["a", "a"]}, "federation.sites"),
        ({"sites": ["../a"]}, "federation.sites"),
        ({"features": {"u": [1.0, 0.0]}}, "federation.features.u"),
        ({"classes": ["one"]}, "federation.classes"),
        ({"deadline": 0}, "federation.deadline"),
        ({"asks": "all"}, "federation.asks"),
        ({"at_least": 4}, "federation.at_least"),
        ({"deadlin": 3}, "federation.deadlin"),
    ],
)
def test_refused_terms(small, terms, name):
    with pytest.raises(InvalidInput) as refused:
        small.federation(small.content({"name": "FedAvg"}), **terms)
    assert refused.value.name == name


PRIVATE = {"name": "DpDroAdmm", "radius": 0.01}


@pytest.mark.parametrize(
    ("change", "name", "said"),
    [
        ({"algorithm": {"name": ["DpDroAdmm"]}}, "algorithm.name", "did you mean DpDroAdmm"),
        ({"algorithm": {"name": "DpDroAdm"}}, "algorithm.name", "did you mean DpDroAdmm"),
        ({"algorithm": {"radius": 0.01}}, "algorithm.name", "DpDroAdmm"),
        ({"algorithm": "DpDroAdmm"}, "algorithm", "a table [algorithm]"),
        ({"algorithm": PRIVATE | {"radis": 3}}, "algorithm.radis", "did you mean radius"),
        ({"algorithm": PRIVATE | {"noise": 3.0}}, "algorithm.noise", "[privacy], from which it follows"),
        ({"algorithm": {"name": "FedAvg"}}, "privacy", "FedAvg adds no noise"),
        ({"algoritm": PRIVATE}, "algoritm", "did you mean algorithm"),
        ({"rouds": 50}, "rouds", "did you mean rounds"),
        ({"rounds": "x"}, "rounds", "a whole number"),
        ({"deadline": 9.0}, "deadline", "did you mean federation.deadline"),
        ({"federaton": {}}, "federaton", "did you mean federation"),
        ({"privacy": {"epsilo": 3.0}}, "privacy.epsilo", "did you mean epsilon"),
        ({"data": 3}, "data", "a table [data]"),
        ({"data": {"label": "kind", "test": 2}}, "data.test", "a number in [0, 1)"),
        ({"data": {"label": "kind", "seed": "x"}}, "data.seed", "a whole number"),
    ],
)
def test_what_is_wrong_is_named_and_not_the_algorithm(small, change, name, said):
    content = small.content(PRIVATE, "CrammerSinger", local_steps=1, batch_size="all")
    with pytest.raises(InvalidInput) as refused:
        small.federation(content | {"privacy": {"epsilon": 3.0, "delta": 1e-4}} | change)
    assert refused.value.name == name
    assert said in str(refused.value)


def test_a_key_of_the_whole_file_in_the_table_of_terms(small):
    with pytest.raises(InvalidInput, match=r"federation.rounds: .*it stands above the first table"):
        small.federation(small.content({"name": "FedAvg"}), rounds=3)


def test_the_order_of_bounded_features_is_agreed_upon(small):
    content, ends = small.content({"name": "FedAvg"}), [0.0, 1.0]
    one, other = ({"u": ends, "v": ends}, {"v": ends, "u": ends})
    assert small.federation(content, features=one).fingerprint != small.federation(content, features=other).fingerprint


def test_made_up_faults_are_refused(small):
    with pytest.raises(InvalidInput) as refused:
        small.federation(small.content({"name": "FedAvg"}) | {"faults": {"lost": 0.1}})
    assert refused.value.name == "faults"


def test_rows_that_do_not_suit(small, tmp_path):
    federation = small.federation(small.content({"name": "FedAvg"}))
    file = tmp_path / "east.csv"
    file.write_text("u,v,w,kind\n1,2,3,emperor\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match="'emperor'; allowed: the classes of the federation"):
        tables.read(file, federation, "east")
    file.write_text("u,v,kind\n1,2,gentoo\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match="lacks w"):
        tables.read(file, federation, "east")
    with pytest.raises(InvalidInput, match="one of the sites of the federation"):
        tables.read(file, federation, "west")


LINES = ["site = 'a'", "federation = 'f.toml'", "table = 'a.csv'", "state = 's'", "server = 'h:1'"]
LINES += ["certificate = 'c'", "key = 'k'"]
BUDGET = ["epsilon = 3.0", "delta = 1e-6", "methods = ['DpSgd']", "row_bound = 1.0", "least_noise = 2.0"]


@pytest.fixture
def site_file(tmp_path):
    def load(*lines):
        file = tmp_path / "site.toml"
        file.write_text("\n".join([*LINES, *lines]), encoding="utf-8")
        return load_site(file)

    return load


def test_the_owner_has_to_say_what_is_accepted(site_file, tmp_path):
    with pytest.raises(InvalidInput) as refused:
        site_file()
    assert refused.value.name == "accept"
    assert site_file("[accept]", "no_privacy = true").table == tmp_path / "a.csv"
    assert site_file("[accept]", "no_privacy = false", *BUDGET).accept["budget"] == Privacy(3.0, 1e-6)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["no_privacy = 'true'"], "accept.no_privacy: received 'true'; allowed: true or false (without quotes)"),
        (["no_privacy = false"], "accept.epsilon: received None"),
        (["no_privacy = true", "epsilon = 3.0"], "accept.no_privacy: received True; allowed: true alone, or a budget"),
        ([*BUDGET, "peers = 'p'"], "accept.peers: received 'p'"),
        ([*BUDGET[1:], "epsilon = 'x'"], "accept.epsilon: received 'x'"),
    ],
)
def test_what_cannot_be_accepted(site_file, lines, said):
    with pytest.raises(InvalidInput) as refused:
        site_file("[accept]", *lines)
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize("anchor", ["s", "s/anchor", "s/deeper/../anchor", "link/anchor"])
def test_an_anchor_in_the_state_folder_is_refused(site_file, tmp_path, anchor):
    (tmp_path / "s").mkdir()
    (tmp_path / "link").symlink_to("s")
    with pytest.raises(InvalidInput, match=r"anchor: .*outside the folder `state`"):
        site_file(f"anchor = '{anchor}'", "[accept]", *BUDGET)
    assert site_file("anchor = 's.anchor'", "[accept]", *BUDGET).anchor == tmp_path / "s.anchor"

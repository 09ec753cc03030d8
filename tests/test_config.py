"""Configuration files: what they stand for, and what is refused."""

import inspect
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedhedge import availability, data
from fedhedge.algorithms import METHODS, FedAvg, FedeRage
from fedhedge.availability import presets
from fedhedge.checks import InvalidInput
from fedhedge.config import Config, load_config
from fedhedge.config.config import AVAILABILITY, PARTITIONERS
from fedhedge.config.read import override
from fedhedge.models import MLP
from fedhedge.simulation import Faults

EXAMPLES = Path(__file__).parent.parent / "examples"
PAPER = ("fashion-skewed", "fashion-uniform", "mnist-skewed", "mnist-uniform")
TEXT = """
rounds = 20
seed = 7
[data]
source = "digits"
[partition]
name = "ByLabel"
clients = 12
[availability]
name = "FixedSize"
size = 3
[model]
name = "MLP"
hidden = [20]
[algorithm]
name = "FedeRage"
alpha = 0.1
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(TEXT)
    return path


def message(path, *overrides, load_data=False):
    with pytest.raises(InvalidInput) as caught:
        load_config(path, overrides).simulation() if load_data else load_config(path, overrides)
    return str(caught.value)


def test_a_file_stands_for_the_same_objects_as_the_python_calls(file):
    given = load_config(file).simulation()
    rule = data.ByLabel(clients=12, classes_per_client=2)
    assert given["algorithm"] == FedeRage(alpha=0.1)
    assert given["model"] == MLP(hidden=(20,))
    assert given["law"] == availability.FixedSize(np.ones(12), size=3)
    assert given["clients"].digest() == data.load("digits").partition(rule, seed=7).digest()
    assert (given["rounds"], given["local_steps"], given["batch_size"], given["seed"]) == (20, 5, 32, 7)
    assert (given["evaluate_every"], given["evaluate_on"], given["weighting"]) == (50, ("test",), "uniform")


def test_settings_hold_every_key_with_its_value_as_json(file):
    settings = load_config(file).settings
    assert json.loads(json.dumps(settings)) | {"evaluate_on": ("test",)} == settings
    assert settings["algorithm"] == {
        "name": "FedeRage", "alpha": 0.1, "gamma": 0.75, "step": None, "ball": None, "beta_step": 0.005,
        "beta_start": 0.0, "cap": None,
    }  # fmt: skip
    assert settings["partition"]["seed"] == 7
    assert settings["rounds"] == 20
    assert settings["on_nonfinite"] == "stop"


def test_the_keys_of_a_table_may_be_set_on_their_own_or_all_at_once(file):
    one = load_config(file, ["algorithm.alpha=1", "rounds=3", "batch_size=all", "partition.seed=3"])
    assert one.algorithm == FedeRage(alpha=1)
    assert one.simulation()["batch_size"] is None
    assert one.settings["batch_size"] == "all"
    assert (one.options.rounds, one.settings["seed"], one.settings["partition"]["seed"]) == (3, 7, 3)
    whole = load_config(file, ['algorithm={name="FedAvg", step=0.5}', "algorithm.ball = 2.0"])
    assert whole.algorithm == FedAvg(step=0.5, ball=2.0)
    assert load_config(file, ["algorithm.alpha=0.2", "algorithm.alpha=0.3"]).algorithm.alpha == 0.3


VALUES = st.one_of(
    st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False), st.lists(st.integers(), max_size=3)
)


@given(st.lists(st.tuples(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), VALUES), max_size=6))
def test_overrides_are_assignments_to_nested_tables(assignments):
    expected: dict = {}
    texts, allowed = [], True
    for path, value in assignments:
        texts.append(f"{'.'.join(path)}={json.dumps(value)}")
        here = expected
        for part in path[:-1]:
            here = here.setdefault(part, {}) if isinstance(here, dict) else here
        if not isinstance(here, dict):
            allowed = False
            break
        here[path[-1]] = value
    found: dict = {}
    if allowed:
        override(found, texts)
        assert found == expected
    else:
        with pytest.raises(InvalidInput, match="is no table"):
            override(found, texts)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("FedAvg", "FedAvg"), ("true", True), ("True", "True"), ("1e-3", 0.001), ("[1, 2", "[1, 2"), ('"3"', "3"),
        ("1\nb = 2", "1\nb = 2"), ("x = y", "x = y"), ("", ""),
    ],
)  # fmt: skip
def test_a_value_that_is_not_toml_is_text(text, value):
    found: dict = {}
    override(found, [f"a.b={text}"])
    assert found == {"a": {"b": value}}
    assert type(found["a"]["b"]) is type(value)


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        # Keys and tables that do not exist, with the nearest one that does.
        ("round=3", "round: received 3; allowed: the keys: rounds, local_steps"),
        ("round=3", "did you mean rounds?"),
        ("algoritm.alpha=1", "did you mean algorithm?"),
        ("algorithm.alhpa=0.1", "algorithm.alhpa: received 0.1; allowed: the keys of FedeRage: step, ball"),
        ("algorithm.alhpa=0.1", "did you mean alpha?"),
        ("alpha=0.1", "did you mean algorithm.alpha?"),
        ("algorithm.rounds=9", "algorithm.rounds: received 9; allowed: the keys of FedeRage: step"),
        ("algorithm.rounds=9", "it stands above the first table"),
        ("model.hiden=[3]", "model.hiden: received [3]; allowed: the keys of MLP: hidden (did you mean hidden?)"),
        ("partition.root='x'", "partition.root: received 'x'; allowed: the keys of ByLabel: clients, classes_per"),
        ("data.rows=3", "data.rows: received 3; allowed: no further key"),
        ("data.root=x", "data.root: received 'x'; allowed: no further key"),
        ("data={source='mnist', rood='x'}", "allowed: the keys of mnist: root (did you mean root?)"),
        ("loop=host", "loop: received 'host'; allowed: the keys: rounds"),
        ("algorithm={name='FedAvg', alpha=0.1}", "alpha: received 0.1; allowed: the keys of FedAvg: step, ball"),
        ("availability={name='Dropout', rate=0.1, law={name='FixedSize', sise=2}}", "availability.law.sise: "),
        # Names that do not exist.
        ("algorithm.name=fedavg", "algorithm.name: received 'fedavg'; allowed: FedAvg, FedeRage"),
        ("algorithm.name=fedavg", "did you mean FedAvg?"),
        ("model.name=MPL", "model.name: received 'MPL'; allowed: Linear, MLP, CNN"),
        ("model.name=MPL", "did you mean MLP?"),
        ("model.name=3", "model.name: received 3; allowed: Linear, MLP, CNN"),
        ("availability.name=sporadics", "did you mean sporadic?"),
        ("partition.name=Dirichlett", "did you mean Dirichlet?"),
        ("data.source=fashion", "data.source: received 'fashion'; allowed: digits, mnist, fashion-mnist"),
        ("data={}", "data.source: received None; allowed: digits"),
        # Keys that are missing, and tables that are none.
        ("availability={name='Independent'}", "availability.probabilities: received None; allowed: a value"),
        ("partition={name='Iid'}", "partition.clients: received None; allowed: a value"),
        ("model=MLP", "model: received 'MLP'; allowed: a table [model] that says at least name = \"MLP\""),
        ("availability={name='Dropout', rate=0.1, law='Everyone'}", "availability.law: received 'Everyone'; allowed"),
        ("rounds.x=3", "--set rounds.x: received 'rounds.x=3'; allowed: rounds is no table"),
        ("rounds", "--set: received 'rounds'; allowed: key=value"),
        ("a..b=1", "--set: received 'a..b=1'; allowed: key=value"),
        # Wrong types.
        ("rounds=1.5", "rounds: received 1.5; allowed: a whole number, 1 or more"),
        ("rounds=true", "rounds: received True; allowed: a whole number"),
        ("rounds='3'", "rounds: received '3'; allowed: a whole number"),
        ("algorithm.alpha=true", "algorithm.alpha: received True; allowed: a number in (0, 1]"),
        ("algorithm.alpha='0.1'", "algorithm.alpha: received '0.1'; allowed: a number in (0, 1]"),
        ("algorithm.step=[0.1]", "algorithm.step: received [0.1]; allowed: a number"),
        ("model.hidden=20", "model.hidden: received 20; allowed: a list of whole numbers"),
        ("model.hidden=[true]", "model.hidden[0]: received True; allowed: a whole number, 1 or more"),
        ("model={name='Linear', intercept=1}", "model.intercept: received 1; allowed: true or false"),
        ("partition.clients='12'", "partition.clients: received '12'; allowed: a whole number, 1 or more"),
        ("partition.reserved=[1]", "partition.reserved: received [1]; allowed: a table"),
        ("availability.size=3.0", "availability.size: received 3.0; allowed: a whole number, 1 or more"),
        ("availability={name='Independent', probabilities='often'}", "availability.probabilities: received 'often'"),
        ("batch_size=full", "batch_size: received 'full'; allowed: a whole number, 1 or more, or \"all\""),
        ("local_steps=many", "local_steps: received 'many'; allowed: a list of whole numbers"),
        ("evaluate_on=test", "evaluate_on: received 'test'; allowed: a list of train, validation, test"),
        ("weighting=true", "weighting: received True; allowed: uniform, rows"),
        # Impossible values.
        ("availability.size=13", "availability.size: received 13; allowed: a whole number from 1 to 12"),
        ("availability={name='FixedSize', prior=[1, 1, 1]}", "availability.clients: received 12; allowed: 3"),
        ("availability={name='Independent', probabilities=1.5}", "availability.probabilities: received 1.5; "),
        ("availability={name='sporadic', size=13}", "availability.size: received 13; allowed: a whole number from 1"),
        ("algorithm.alpha=0", "algorithm.alpha: received 0; allowed: a number in (0, 1]"),
        ("algorithm.alpha=1.01", "algorithm.alpha: received 1.01; allowed: a number in (0, 1]"),
        ("algorithm.alpha=nan", "algorithm.alpha: received nan; allowed: a number in (0, 1]"),
        ("algorithm.gamma=-0.1", "algorithm.gamma: received -0.1; allowed: a number in [0, 1]"),
        ("partition.clients=0", "partition.clients: received 0; allowed: a whole number, 1 or more"),
        ("model.hidden=[]", "model.hidden: received []; allowed: a list of at least one whole number"),
        ("rounds=0", "rounds: received 0; allowed: a whole number, 1 or more"),
        ("evaluate_every=0", "evaluate_every: received 0; allowed: a whole number, 1 or more"),
        ("batch_size=0", "batch_size: received 0; allowed: a whole number, 1 or more"),
        ("seed=-1", "seed: received -1; allowed: a whole number from 0 to 4294967295"),
        ("seed=4294967296", "seed: received 4294967296; allowed: a whole number from 0 to 4294967295"),
        ("local_steps=[1, 2]", "local_steps: received (1, 2); allowed: one number, or 12 numbers"),
        ("evaluate_on=['tset']", "evaluate_on: received 'tset'; allowed: train, validation, test (did you mean test?)"),
    ],
)  # fmt: skip
def test_refused_without_opening_the_data(file, assignment, expected, monkeypatch):
    monkeypatch.setattr(Config, "clients", None)
    assert expected in message(file, assignment)


@pytest.mark.parametrize(
    ("assignments", "expected"),
    [
        (["partition.classes_per_client=11"], "partition.classes_per_client: received 11; allowed: a whole number"),
        (["partition.reserved={0 = [12]}"], "partition.reserved: received 12; allowed: class indices from 0 to 9"),
        (
            ["partition={name='Dirichlet', clients=12, concentration=0.1, minimum_rows=500}"],
            "partition.minimum_rows: received 500; allowed: a whole number from 1 to 149",
        ),
        (
            ["data={source='clusters', rows=2}", "partition={name='Iid', clients=12}"],
            "partition.clients: received 12; allowed: so few that each gets a row to train on",
        ),
        (["partition.validation=0.9"], "partition.validation + test: received 1.1; allowed: a number in [0, 1)"),
        (["partition.scaling=max"], "partition.scaling: received 'max'; allowed: default, standard, unit, none"),
        (["data={source='clusters', spread=0}"], "data.spread: received 0; allowed: a number in (0, inf)"),
        (["data.source=iris", "model={name='CNN'}"], "model.features: received (4,); allowed: images"),
    ],
)  # fmt: skip
def test_refused_when_the_data_are_there_but_no_round_is_run(file, assignments, expected):
    assert expected in message(file, *assignments, load_data=True)


@pytest.mark.parametrize("table", ["data", "partition", "availability", "model", "algorithm"])
def test_every_table_is_asked_for_with_an_example(file, table):
    lines = TEXT.split("\n")
    start = lines.index(f"[{table}]")
    end = next((i for i in range(start + 1, len(lines)) if lines[i].startswith("[")), len(lines))
    file.write_text("\n".join(lines[:start] + lines[end:]))
    assert f"{table}: received None; allowed: a table [{table}] that says at least" in message(file)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rounds = 3\nmodel MLP\n", "small.toml, line 2: received 'model MLP'; allowed: TOML"),
        ("rounds = 3\nrounds = 4\n", "small.toml, line 2: received 'rounds = 4'; allowed: TOML (Cannot overwrite"),
        ('rounds = 3\nmodel = "', "small.toml, line 2: received 'model = \"'; allowed: TOML"),
        ("rounds = ", "small.toml, line 1: received 'rounds ='; allowed: TOML"),
        ("", "data: received None"),
    ],
)  # fmt: skip
def test_what_is_not_toml_is_refused_with_file_and_line(file, text, expected):
    file.write_text(text)
    assert expected in message(file)


def test_a_file_that_cannot_be_read_is_refused(file, tmp_path):
    assert "'absent.toml'; allowed: a TOML file (No such file" in message("absent.toml")
    assert "allowed: a TOML file (Is a directory)" in message(tmp_path)
    file.write_bytes(b"rounds = 3 # \xff")
    assert "small.toml: received 'bytes that are not UTF-8'; allowed: TOML" in message(file)


def test_laws_nest_and_take_what_they_need_from_the_data(file):
    dropout = load_config(file, ["availability={name='Dropout', rate=0.5, law={name='FixedSize', size=4}}"])
    assert dropout.law == availability.Dropout(availability.FixedSize(np.ones(12), size=4), 0.5)
    groups = [list(range(6)), list(range(6, 12))]
    config = load_config(file, [f"availability={{name='Groups', groups={groups}, law={{name='Everyone'}}}}"])
    assert config.law == availability.Groups(groups, availability.Everyone())
    assert config.settings["availability"]["law"] == {"name": "Everyone", "clients": None}
    subsets = load_config(file, ['availability={name="Subsets", probabilities={"0,1"=0.5, "2"=0.5}}'])
    assert subsets.law == availability.Subsets({(0, 1): 0.5, (2,): 0.5}, clients=12)

    sizes = load_config(file, ["availability={name='more_data_first', power=1.0}"])
    rows = sizes.clients.counts("train")
    np.testing.assert_allclose(sizes.law.inclusion_probabilities(), rows / rows.max())
    labels = load_config(file, ["availability={name='many_labels_first', strength=1.0}"])
    held = (labels.clients.label_counts().to_numpy() > 0).sum(axis=1)
    np.testing.assert_allclose(labels.law.inclusion_probabilities(), held / 10)


def test_a_method_around_another_and_the_files_own_law(file):
    nested = [
        "algorithm={name='FedAvot', law='availability'}",
        "algorithm.base.name=FedeRage",
        "algorithm.base.alpha=0.2",
    ]
    config = load_config(file, nested)
    law = availability.FixedSize(np.ones(12), size=3)
    assert config.algorithm == METHODS["FedAvot"](FedeRage(alpha=0.2), law=law)
    assert config.settings["algorithm"]["base"]["alpha"] == 0.2
    assert config.settings["algorithm"]["law"] == "availability"
    other = load_config(file, [*nested, "algorithm.law={name='Independent', probabilities=0.5}"])
    assert other.algorithm.law == availability.Independent(0.5)
    assert load_config(file, ["algorithm={name='Superquantile'}"]).algorithm == METHODS["Superquantile"](FedAvg())


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        (
            "{name='FedAvot'}",
            'law: received None; allowed: a table [algorithm.law] that says at least name = "FixedSize"',
        ),
        ("{name='FedAvot'}", 'or law = "availability", the law of the file itself'),
        ("{name='FedAvot', law='availability', importance=[1, 2]}", "algorithm.importance: received 2; allowed: 12"),
        ("{name='FedAvot', law='availability', importance=0.5}", "algorithm.importance: received 0.5; allowed: a list"),
        (
            "{name='HorvitzThompson', law={name='Independent', probabilities=[0.5, 0.5]}}",
            "algorithm.law.clients: received 12; allowed: 2",
        ),
        (
            "{name='FedOpt', base={name='FedAvot', law='availability', importance=[1, 2]}}",
            "algorithm.base.importance: received 2",
        ),
        ("{name='FedAvot', law='own'}", "algorithm.law: received 'own'; allowed: a table [algorithm.law]"),
        ("{name='FedAvot', law={name='FixedSiz'}}", "algorithm.law.name: received 'FixedSiz'"),
        (
            "{name='Superquantile', base={name='FedAvg', alpha=1}}",
            "algorithm.base.alpha: received 1; allowed: the keys",
        ),
        ("{name='Superquantile', base={name='FedAvg', step=-1}}", "algorithm.base.step: received -1"),
        ("{name='Superquantile', base={name='Scaffold'}}", "algorithm.base: received 'Scaffold'"),
        ("{name='Superquantile', base=3}", "algorithm.base: received 3; allowed: a table [algorithm.base]"),
    ],
)
def test_refused_inside_a_nested_method(file, algorithm, expected):
    assert expected in message(file, f"algorithm={algorithm}")


def test_faults_have_a_table_of_their_own(file):
    assert load_config(file).simulation()["faults"] is None
    config = load_config(file, ["faults.lost=0.1", "faults.acknowledged=false"])
    assert config.simulation()["faults"] == Faults(lost=0.1, acknowledged=False)
    assert config.settings["faults"] == {"lost": 0.1, "acknowledged": False, "forgets": 0.0}
    assert "faults.lost: received 2; allowed: a number in [0, 1]" in message(file, "faults.lost=2")
    assert "faults.lots: received 1; allowed: the keys of faults: lost" in message(file, "faults.lots=1")
    assert "faults: received true; allowed: a table [faults]" in message(file, "faults=true").lower()


def test_every_registered_name_can_be_written(file):
    for name, method in METHODS.items():
        written = f'algorithm={{name="{name}"}}'
        needed = [key for key, entry in inspect.signature(method).parameters.items() if entry.default is entry.empty]
        if needed:
            assert f"algorithm.{needed[0]}: received None" in message(file, written)
        else:
            assert load_config(file, [written]).algorithm == method()
    needs = {"Dirichlet": "concentration=1.0"}
    for name, rule in PARTITIONERS.items():
        extra = f", {needs[name]}" if name in needs else ""
        made = load_config(file, [f'partition={{name="{name}", clients=12{extra}}}']).partitioner
        assert type(made) is rule
    assert set(AVAILABILITY) >= {*availability.LAWS, "sporadic", "persistent", "lognormal", "label_cycle"}


def test_one_seed_decides_all_that_is_not_given_its_own(file):
    law = "availability={name='lognormal', strength=0.5}"
    assert load_config(file, [law]).law == presets.lognormal(12, 0.5, seed=7)
    assert load_config(file, [law, "availability.seed=3"]).law == presets.lognormal(12, 0.5, seed=3)
    assert load_config(file, ["seed=8"]).clients.digest() != load_config(file).clients.digest()
    assert load_config(file, ["seed=8", "partition.seed=7"]).clients.digest() == load_config(file).clients.digest()


def test_a_folder_of_sites_needs_no_partition(file, tmp_path):
    rng = np.random.default_rng(0)
    sites = tmp_path / "sites"
    sites.mkdir()
    for name in ("north", "south", "west", "east"):
        rows = pd.DataFrame({"a": rng.random(20), "b": rng.random(20), "fault": np.arange(20) % 2})
        rows.to_csv(sites / f"{name}.csv", index=False)
    text = TEXT.replace('source = "digits"', f'source = "folder"\npath = "{sites}"\nlabel = "fault"\ntest = 0.25')
    file.write_text(text)
    assert "partition: received {" in message(file)
    file.write_text(text.replace('[partition]\nname = "ByLabel"\nclients = 12\n', ""))
    clients = load_config(file).simulation()["clients"]
    assert clients.names == ("east", "north", "south", "west")
    assert clients.counts("test").tolist() == [5, 5, 5, 5]
    assert "availability.size: received 5; allowed: a whole number from 1 to 4" in message(file, "availability.size=5")
    assert "data.label: received None; allowed: a value" in message(file, f"data={{source='folder', path='{sites}'}}")
    assert "fualt" in message(file, "data.label=fualt")
    assert "data.folder: received 'nowhere'" in message(file, "data.path=nowhere")


def test_where_the_data_lie_is_no_setting(file):
    there, here = (load_config(file, ["data.source=mnist", f"data.root={root}"]) for root in ("there", "here"))
    assert there.settings == here.settings


@pytest.mark.parametrize("name", PAPER)
def test_examples_are_the_setting_of_the_paper(name):
    config = load_config(EXAMPLES / f"{name}.toml")
    skewed = name.endswith("skewed")
    reserved = {27: (8,), 28: (8, 9), 29: (9,)} if skewed else None
    assert config.partitioner == data.ByLabel(clients=30, classes_per_client=2, reserved=reserved)
    assert config.law.largest() == config.law.smallest() == 3
    rare = [0.0107, 0.0078, 0.0053] if skewed else [0.1] * 3
    common = 0.11023 if skewed else 0.1
    expected = [common] * 27 + rare
    np.testing.assert_allclose(config.law.inclusion_probabilities(), expected, atol=1e-5)
    assert config.algorithm == FedeRage()
    assert config.algorithm.step == pytest.approx(0.1 / 15.25)
    assert config.model == MLP(hidden=(200,))
    assert (config.options.rounds, config.options.evaluate_every) == (3000, 50)


def test_the_quick_example_needs_no_files():
    given = load_config(EXAMPLES / "digits-quick.toml").simulation()
    assert len(given["clients"]) == 30
    assert (given["clients"].label_counts().to_numpy() > 0).sum(axis=1).max() == 2


@pytest.mark.data
@pytest.mark.parametrize("name", ["fashion-skewed", "mnist-uniform"])
def test_examples_with_the_real_images(name, real_data):
    clients = load_config(EXAMPLES / f"{name}.toml").simulation()["clients"]
    held = clients.label_counts().to_numpy() > 0
    assert clients.features.shape == (70_000, 28, 28, 1)
    assert held.sum(axis=1).max() == 2
    if name.endswith("skewed"):
        assert [np.flatnonzero(row).tolist() for row in held[27:]] == [[8], [8, 9], [9]]
        assert not held[:27, 8:].any()

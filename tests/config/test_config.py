"""Configuration files: what they stand for."""

import inspect
import json

import numpy as np
import pandas as pd

from fedhedge import availability, data
from fedhedge.algorithms import METHODS, FedAvg, FedeRage
from fedhedge.availability import presets
from fedhedge.config import load_config
from fedhedge.config.config import AVAILABILITY, PARTITIONERS
from fedhedge.models import MLP
from fedhedge.simulation import Faults


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


def test_faults_have_a_table_of_their_own(file, message):
    assert load_config(file).simulation()["faults"] is None
    config = load_config(file, ["faults.lost=0.1", "faults.acknowledged=false"])
    assert config.simulation()["faults"] == Faults(lost=0.1, acknowledged=False)
    assert config.settings["faults"] == {"lost": 0.1, "acknowledged": False, "forgets": 0.0}
    assert "faults.lost: received 2; allowed: a number in [0, 1]" in message(file, "faults.lost=2")
    assert "faults.lots: received 1; allowed: the keys of faults: lost" in message(file, "faults.lots=1")
    assert "faults: received true; allowed: a table [faults]" in message(file, "faults=true").lower()


def test_every_registered_name_can_be_written(file, message):
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


def test_a_folder_of_sites_needs_no_partition(file, message, tmp_path):
    rng = np.random.default_rng(0)
    sites = tmp_path / "sites"
    sites.mkdir()
    for name in ("north", "south", "west", "east"):
        rows = pd.DataFrame({"a": rng.random(20), "b": rng.random(20), "fault": np.arange(20) % 2})
        rows.to_csv(sites / f"{name}.csv", index=False)
    text = file.read_text().replace(
        'source = "digits"', f'source = "folder"\npath = "{sites}"\nlabel = "fault"\ntest = 0.25'
    )
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

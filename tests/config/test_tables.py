"""The tables of a configuration file: which keys and values are refused, and by which name."""

import pytest

from fedhedge.config import Config


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
def test_refused_without_opening_the_data(file, message, assignment, expected, monkeypatch):
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
def test_refused_when_the_data_are_there_but_no_round_is_run(file, message, assignments, expected):
    assert expected in message(file, *assignments, load_data=True)


@pytest.mark.parametrize("table", ["data", "partition", "availability", "model", "algorithm"])
def test_every_table_is_asked_for_with_an_example(file, message, table):
    lines = file.read_text().split("\n")
    start = lines.index(f"[{table}]")
    end = next((i for i in range(start + 1, len(lines)) if lines[i].startswith("[")), len(lines))
    file.write_text("\n".join(lines[:start] + lines[end:]))
    assert f"{table}: received None; allowed: a table [{table}] that says at least" in message(file)


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
def test_refused_inside_a_nested_method(file, message, algorithm, expected):
    assert expected in message(file, f"algorithm={algorithm}")

"""The command line for sites: export and fit, and what each says of bad files."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fedhedge as fh
from fedhedge.cli import main
from fedhedge.config.classifier import load_classifier

CONFIG = """
[classifier]
method = "dp-dro"
rounds = 10
random_state = 0
[classifier.feature_bounds]
bill_length_mm = [30.0, 60.0]
bill_depth_mm = [12.0, 24.0]
flipper_length_mm = [160.0, 240.0]
body_mass_g = [2000.0, 7000.0]
[privacy]
epsilon = 8.0
delta = 1e-5
"""
RANGES = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")
pytestmark = pytest.mark.usefixtures("no_cache")


@pytest.fixture
def sites(tmp_path, monkeypatch, capsys):
    """A folder of three sites with penguins, and a configuration file, in the working directory."""
    monkeypatch.chdir(tmp_path)
    assert main(["data", "export", "penguins", "sites", "--clients", "3", "--label", "species"]) == 0
    Path("dro.toml").write_text(CONFIG)
    capsys.readouterr()
    return Path("sites")


def fit(*more):
    return main(["fit", "sites", "--label", "species", "--config", "dro.toml", "-o", "model", *more])


def change(file, **columns):
    path = Path(file)
    pd.read_csv(path).assign(**columns).to_csv(path, index=False)


@pytest.mark.filterwarnings("ignore:the outer range stays", "ignore:one bin holds", "ignore:the end bins")
def test_bounds_estimated_from_the_rows_are_stated_with_their_price(sites, capsys):
    wide = "estimated_bounds={outer = [0.0, 10000.0], share = 0.3}"
    assert fit("--set", wide) == 2
    assert "estimated_bounds: received" in capsys.readouterr().err
    Path("dro.toml").write_text(CONFIG.split("[classifier.feature_bounds]")[0] + "[privacy]\nepsilon=8.0\ndelta=1e-5\n")
    assert fit("--set", wide) == 0
    said = capsys.readouterr().out
    assert "histograms of the features, 32 bins each: Gaussian, l2 sensitivity 2.828" in said
    said = " ".join(said.split())
    assert "estimated with noise, which is counted among the releases here" in said
    assert "for 0.3 of the budget's mu^2, in 32 bins of the outer range" in said
    found = fh.FederatedDROClassifier.load("model").bounds_
    for name, low, high in zip(RANGES, found.low, found.high, strict=True):
        assert f"{name}: [{low:.6g}, {high:.6g}] within [0, 10000]" in said


def test_exported_sites_hold_every_row_once(sites):
    source = fh.data.load("penguins")
    tables = [pd.read_csv(path) for path in sorted(sites.iterdir())]
    assert [path.name for path in sorted(sites.iterdir())] == ["site-1.csv", "site-2.csv", "site-3.csv"]
    together = pd.concat(tables)
    expected = pd.DataFrame(source.features, columns=list(source.feature_names))
    expected["species"] = np.array(source.classes)[source.labels]
    order = list(expected.columns)
    both = [table.sort_values(order, ignore_index=True) for table in (together, expected)]
    pd.testing.assert_frame_equal(*both)
    for table in tables:
        assert abs(len(table) - 114) <= 1
        assert table["species"].nunique() == 3


def test_exported_sites_are_named_as_asked(tmp_path, capsys):
    for folder, chosen in (("named", ["--sites", "north", "east", "south"]), ("plain", ["--clients", "3"])):
        assert main(["data", "export", "iris", str(tmp_path / folder), *chosen]) == 0
    for name, number in (("north", 1), ("east", 2), ("south", 3)):
        assert (tmp_path / f"named/{name}.csv").read_text() == (tmp_path / f"plain/site-{number}.csv").read_text()
    assert len(list((tmp_path / "named").iterdir())) == 3
    for names in (["../north"], ["north", "north"]):
        assert main(["data", "export", "iris", str(tmp_path / "other"), "--sites", *names]) == 2
        assert "--sites: received" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


def test_export_refuses_a_folder_in_use_and_pictures(sites, complaint):
    assert main(["data", "export", "iris", "sites"]) == 2
    assert "new or empty folder" in complaint()
    assert main(["data", "export", "digits", "other"]) == 2
    assert "a table of numbers" in complaint()
    assert main(["data", "export", "iris", "other", "--label", "petal length (cm)"]) == 2
    assert "a label column with a name of its own" in complaint()
    assert main(["data", "export", "pump", "other", "--set", "rns=8"]) == 2
    assert "did you mean runs?" in complaint()


def test_fit_and_predict_give_what_the_estimator_gives(sites, capsys):
    assert fit() == 0
    printed = capsys.readouterr().out
    tables = {path.stem: pd.read_csv(path) for path in sorted(sites.iterdir())}
    table = pd.concat(tables.values())
    where = np.repeat(list(tables), [len(table) for table in tables.values()])
    model = load_classifier("dro.toml").fit(table.drop(columns="species"), table["species"], clients=where)

    saved = fh.FederatedDROClassifier.load("model")
    assert (saved.coef_ == model.coef_).all()
    assert list(saved.privacy_) == list(tables)
    for statement in model.privacy_.values():
        assert str(statement) in Path("model/privacy.txt").read_text()
    first, *others = model.privacy_.values()
    assert str(first) in printed
    for other in others:
        (line,) = [line for line in printed.splitlines() if line.startswith(f"  {other.site} ({other.samples} rows)")]
        assert f"epsilon {other.epsilon:.4g}" in line
        for release in other.each_round:
            assert f"sigma {release.sigma:.4g} on {release.name}" in line
    assert json.loads(Path("model/model.json").read_text())["label"] == "species"

    change("sites/site-2.csv", bill_length_mm=lambda rows: rows["bill_length_mm"] * 1.1)
    table = pd.read_csv("sites/site-2.csv")
    assert main(["predict", "model", "sites/site-2.csv", "-o", "out.csv"]) == 0
    captured = capsys.readouterr()
    predicted = model.predict(table.drop(columns="species"))
    pd.testing.assert_frame_equal(pd.read_csv("out.csv"), table.assign(predicted_species=predicted))
    right = int((predicted == table["species"]).sum())
    assert captured.err == f"{right} of {len(table)} rows right ({right / len(table):.4f})\n"
    assert captured.out == ""

    table.drop(columns="species").iloc[:, ::-1].to_parquet("new.parquet")
    assert main(["predict", "model", "new.parquet"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert [line.rpartition(",")[2] for line in captured.out.splitlines()] == ["predicted_species", *predicted]


def test_quiet_prints_nothing_and_the_statement_is_still_saved(sites, capsys):
    assert fit("--quiet") == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
    assert "Privacy statement of site site-3" in Path("model/privacy.txt").read_text()


def test_bounds_from_the_data_are_warned_of(sites, capsys):
    assert fit("--quiet", "--set", 'classifier.feature_bounds="data"') == 0
    assert "fedhedge: warning: feature bounds taken from the data" in capsys.readouterr().err
    assert "TAKEN FROM THE DATA" in Path("model/privacy.txt").read_text()


def _empty(sites):
    (sites / "site-2.csv").write_text("")


def _one_row(sites):
    path = sites / "site-2.csv"
    pd.read_csv(path).head(1).to_csv(path, index=False)


def _without(sites):
    path = sites / "site-2.csv"
    pd.read_csv(path).drop(columns="body_mass_g").assign(wing=1).to_csv(path, index=False)


def _surplus(sites):
    lines = (sites / "site-2.csv").read_text().splitlines()
    lines[3] = f"1.0,{lines[3]}"
    (sites / "site-2.csv").write_text("\n".join(lines))


def _repeated(sites):
    path = sites / "site-2.csv"
    path.write_text(path.read_text().replace("bill_length_mm", "bill_depth_mm", 1))


BAD_SITES = [
    (lambda sites: change(sites / "site-2.csv", bill_depth_mm=np.nan), "site-2.csv, column 'bill_depth_mm': .*a gap"),
    (lambda sites: change(sites / "site-2.csv", bill_depth_mm="deep"), "site-2.csv, column 'bill_depth_mm': .*'deep'"),
    (lambda sites: change(sites / "site-2.csv", bill_depth_mm=np.inf), "site-2.csv, column 'bill_depth_mm': .*inf"),
    (lambda sites: change(sites / "site-2.csv", species="Gentoo"), "species of site 'site-2': .*one class, Gentoo"),
    (lambda sites: change(sites / "site-2.csv", species=np.nan), "site-2.csv, column 'species'"),
    (_one_row, "rows of site 'site-2': .*1 sample"),
    (_without, "columns of site-2.csv: .*lacks body_mass_g; adds wing"),
    (_empty, "site-2.csv: .*an empty file"),
    (_surplus, "site-2.csv, row 3: received '6 fields'; allowed: 5 fields"),
    (_repeated, "site-2.csv, column 'bill_depth_mm': received '2 columns of this name'"),
    (lambda sites: [path.unlink() for path in sites.iterdir()], "one .csv or .parquet file for each site"),
]


@pytest.mark.parametrize(("harm", "message"), BAD_SITES, ids=[message for _, message in BAD_SITES])
def test_fit_names_the_site_and_the_column(sites, complaint, harm, message):
    harm(sites)
    assert fit() == 2
    assert re.search(message, complaint())
    assert not Path("model").exists()


BAD_SETTINGS = [
    (["privacy.epsilon=0"], "privacy.epsilon: received 0"),
    (["privacy.delta=0.02"], "delta at site 'site-1': received 0.02; allowed: a number below 1/n = 0.00877"),
    (["privacy={epsilon = 1.0}"], r"error: privacy: .*delta missing"),
    (["privacy.epsilom=1"], "privacy.epsilom: .*did you mean epsilon"),
    (["classifier.method=dro"], "privacy: .*'dro' adds no noise"),
    (["classifier.metod=dro"], "classifier.metod: .*did you mean method"),
    (["classifier.epsilon=1"], r"classifier.epsilon: .*a key of the table \[privacy\]"),
    (["classifier.method=dp-ermm"], "classifier.method: .*did you mean dp-erm"),
    (["classifier.norm=l3"], "classifier.norm: received 'l3'"),
    (["classifier.radius=-1"], "classifier.radius: received -1"),
    (["classifier.options={stp = 1.0}"], "classifier.options.stp: .*did you mean step"),
    (["rounds=3"], "rounds: .*did you mean classifier.rounds"),
    (["clasifier={}"], "clasifier: .*did you mean classifier"),
    (["privacy=3"], r"privacy: received 3; allowed: a table \[privacy\]"),
    (['classifier.classes=["Adelie", "Gentoo"]'], "species of site 'site-1': received 'Chinstrap'"),
    (["classifier.feature_bounds={body_mass = [0, 1]}"], "feature_bounds.body_mass: .*did you mean body_mass_g"),
]


@pytest.mark.parametrize(("changes", "message"), BAD_SETTINGS, ids=[changes[0] for changes, _ in BAD_SETTINGS])
def test_fit_names_the_setting(sites, complaint, changes, message):
    assert fit(*(part for change in changes for part in ("--set", change))) == 2
    assert re.search(message, complaint())
    assert not Path("model").exists()


def test_a_private_method_needs_a_budget(sites, complaint):
    Path("dro.toml").write_text(CONFIG[: CONFIG.index("[privacy]")])
    assert fit() == 2
    assert re.search(r"privacy: received None; allowed: a table \[privacy\] .*'dp-dro'", complaint())


BAD_ESTIMATES = [
    ("outer = [1.0, 0.0]", r"error: estimated_bounds.outer: received \[1.0, 0.0\]"),
    ("outer = 3.0", "error: estimated_bounds.outer: received 3.0"),
    ("outer = {flow = [0.0, 0.0]}", r"error: estimated_bounds.outer.flow: received \[0.0, 0.0\]"),
    ("outer = [-1e308, 1e308]", "error: estimated_bounds.outer: .*divide into 32 bins"),
    ("outer = [0.0, 1.0]\nbins = 100001", "error: estimated_bounds.bins: .*from 2 to 100000"),
    ("outer = [0.0, 1.0]\nshare = 0.9999999999999999", "error: estimated_bounds.share: .*leaves some of the budget"),
]


@pytest.mark.parametrize(("table", "message"), BAD_ESTIMATES, ids=[table for table, _ in BAD_ESTIMATES])
def test_an_estimate_is_checked_before_a_row_is_read(tmp_path, monkeypatch, complaint, table, message):
    monkeypatch.chdir(tmp_path)
    start, budget = '[classifier]\nmethod = "dp-dro"\n', "[privacy]\nepsilon = 8.0\ndelta = 1e-5\n"
    Path("dro.toml").write_text(f"{start}{budget}[estimated_bounds]\n{table}\n")
    assert main(["fit", "nowhere", "--label", "species", "--config", "dro.toml", "-o", "model"]) == 2
    assert re.search(message, complaint())


def test_fit_proposes_to_estimate_bounds_that_are_missing(sites, complaint):
    Path("dro.toml").write_text(CONFIG.split("[classifier.feature_bounds]")[0] + "[privacy]\nepsilon=8.0\ndelta=1e-5\n")
    assert fit() == 2
    assert "[estimated_bounds]" in complaint()


def test_fit_replaces_a_model_only_when_told_to(sites, capsys, complaint):
    assert fit("--quiet") == 0
    before = {path.name: path.read_bytes() for path in Path("model").iterdir()}
    assert fit("--quiet", "--set", "classifier.random_state=1") == 2
    said = complaint()
    assert "--overwrite" in said
    assert "still counts against the budget of its rows" in said
    assert {path.name: path.read_bytes() for path in Path("model").iterdir()} == before
    assert fit("--quiet", "--overwrite", "--set", "classifier.random_state=1") == 0
    assert (
        "fedhedge: warning: model is overwritten; what the earlier model released still counts"
        in capsys.readouterr().err
    )
    assert Path("model/model.json").read_bytes() != before["model.json"]
    assert len(list(Path("model").iterdir())) == 3


def test_the_place_of_the_result_is_checked_before_the_work(tmp_path, monkeypatch, complaint):
    """Neither sites nor a model are there: the place is what is complained of."""
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    for out, message in (("file", "this is a file"), ("file/model", "file is a file")):
        assert main(["fit", "nowhere", "--label", "species", "-o", out]) == 2
        assert message in complaint()
    for out, message in ((".", "this is a folder"), ("file/out.csv", "file is a file")):
        assert main(["predict", "nowhere", "nothing.csv", "-o", out]) == 2
        assert message in complaint()


def test_another_label_column_is_proposed(sites, complaint):
    assert main(["fit", "sites", "--label", "specie", "-o", "model"]) == 2
    assert re.search("site-1.csv, label column: .*did you mean species", complaint())

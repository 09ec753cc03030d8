"""Predictions from a saved model on the command line, and what is said of bad files."""

import re

import numpy as np
import pandas as pd
import pytest

import fedhedge as fh
from fedhedge.cli import main

pytestmark = pytest.mark.usefixtures("no_cache")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of one round, for what `predict` refuses."""
    source = fh.data.load("penguins")
    table = pd.DataFrame(source.features, columns=list(source.feature_names))
    labels = pd.Series(np.array(source.classes)[source.labels], name="species")
    folder = tmp_path_factory.mktemp("model")
    fh.FederatedDROClassifier(rounds=1).fit(table, labels).save(folder)
    table.assign(species=labels).head(6).to_csv(folder / "new.csv", index=False)
    return folder


BAD_ROWS = [
    (lambda table: table.drop(columns=["bill_depth_mm", "species"]), "columns of new.csv: .*lacks bill_depth_mm'"),
    (lambda table: table.assign(wing=1.0), "columns of new.csv: .*adds wing"),
    (lambda table: table.assign(body_mass_g=[1, 2, 3, np.nan, 5, 6]), "new.csv, column 'body_mass_g': .*row index 3"),
    (lambda table: table.assign(body_mass_g="heavy"), "new.csv, column 'body_mass_g': .*'heavy'"),
    (lambda table: table.assign(species="Emperor"), "new.csv, column 'species', row 1: .*'Emperor'.*seen in training"),
    (lambda table: table.head(0), "new.csv: .*no rows"),
]


@pytest.mark.parametrize(("harm", "message"), BAD_ROWS, ids=[message for _, message in BAD_ROWS])
def test_predict_names_the_file_and_the_column(model, tmp_path, complaint, harm, message):
    harm(pd.read_csv(model / "new.csv")).to_csv(tmp_path / "new.csv", index=False)
    assert main(["predict", str(model), str(tmp_path / "new.csv"), "-o", str(tmp_path / "out.csv")]) == 2
    assert re.search(message, complaint())
    assert not (tmp_path / "out.csv").exists()


def test_predict_refuses_files_that_are_no_tables_and_folders_that_are_no_models(model, tmp_path, complaint):
    (tmp_path / "empty.csv").write_text("")
    for name, message in (
        ("empty.csv", "an empty file"),
        ("missing.csv", "No such file"),
        ("new.txt", "ends in .csv or .parquet"),
    ):
        assert main(["predict", str(model), str(tmp_path / name)]) == 2
        assert message in complaint()
    assert main(["predict", str(tmp_path), str(model / "new.csv")]) == 2
    assert "model folder" in complaint()


def test_a_model_without_column_names_takes_columns_by_position(tmp_path, capsys, complaint):
    source = fh.data.load("penguins")
    labels = np.array(source.classes)[source.labels]
    model = fh.FederatedDROClassifier(rounds=1).fit(source.features, labels)
    model.save(tmp_path / "model")
    table = pd.DataFrame(source.features, columns=list("abcd")).head(6)
    table.to_csv(tmp_path / "new.csv", index=False)
    assert main(["predict", str(tmp_path / "model"), str(tmp_path / "new.csv"), "-o", str(tmp_path / "out.csv")]) == 0
    assert pd.read_csv(tmp_path / "out.csv")["predicted_y"].tolist() == model.predict(source.features[:6]).tolist()
    assert capsys.readouterr().err == ""
    table.assign(y=labels[:6]).to_csv(tmp_path / "new.csv", index=False)
    assert main(["predict", str(tmp_path / "model"), str(tmp_path / "new.csv")]) == 0
    assert "of 6 rows right" in capsys.readouterr().err
    table.drop(columns="b").to_csv(tmp_path / "new.csv", index=False)
    assert main(["predict", str(tmp_path / "model"), str(tmp_path / "new.csv")]) == 2
    assert re.search("columns of new.csv: received 'a, c, d'; allowed: 4 features in the order", complaint())
    table.assign(b="wide").to_csv(tmp_path / "new.csv", index=False)
    assert main(["predict", str(tmp_path / "model"), str(tmp_path / "new.csv")]) == 2
    assert "new.csv, column 'b': received 'wide'" in complaint()


def test_predict_refuses_rows_that_are_out_of_line(model, tmp_path, complaint):
    text = (model / "new.csv").read_text()
    (tmp_path / "new.csv").write_text(text.replace("\n", "\n7,", 1))
    assert main(["predict", str(model), str(tmp_path / "new.csv")]) == 2
    assert "new.csv, row 1: received '6 fields'; allowed: 5 fields" in complaint()
    (tmp_path / "new.csv").write_text(text.replace("bill_length_mm", "body_mass_g", 1))
    assert main(["predict", str(model), str(tmp_path / "new.csv")]) == 2
    assert "new.csv, column 'body_mass_g': received '2 columns of this name'" in complaint()

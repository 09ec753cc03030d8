"""The folder of a fitted classifier: what comes back, what is refused, and saving over an older model."""

import contextlib
import hashlib
import io
import json
import math
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fedhedge as fh
from fedhedge import files
from fedhedge.privacy import EstimatedBounds
from iris_sites import COLUMNS, RANGES, SITES, SPECIES, X, Y, private


@pytest.fixture(scope="module")
def fitted():
    return private().fit(X, Y, clients=SITES)


@pytest.fixture(scope="module")
def estimated():
    # Petals start near 0 against bins of 2 cm, which looks like values beyond the range.
    wide = EstimatedBounds((0.0, 16.0), share=0.5, bins=8)
    with pytest.warns(UserWarning, match="end bins of the outer range are crowded"):
        return private(feature_bounds=wide, privacy=fh.Privacy(100.0, 1e-5)).fit(X, Y, clients=SITES)


def only_arrays(folder):
    (path,) = folder.glob("arrays-*.npz")
    return path


@pytest.mark.parametrize("labels", [Y, SPECIES, Y.astype(object)], ids=["text", "whole", "object"])
def test_folder_brings_the_model_back(tmp_path, labels):
    model = private(random_state=123456789).fit(X, pd.Series(labels, name="species"), clients=SITES)
    model.save(tmp_path / "model")
    back = fh.FederatedDROClassifier.load(tmp_path / "model")
    assert (back.predict(X) == model.predict(X)).all()
    assert back.classes_.dtype == model.classes_.dtype
    assert (back.decision_function(X) == model.decision_function(X)).all()
    assert (back.lambda_ == model.lambda_).all()
    assert back.privacy_ == model.privacy_
    assert back.get_params() == model.get_params() | {"random_state": None, "feature_bounds": [list(p) for p in RANGES]}
    names = sorted(path.name for path in (tmp_path / "model").iterdir())
    assert names == [only_arrays(tmp_path / "model").name, "model.json", "privacy.txt"]
    said = (tmp_path / "model" / "privacy.txt").read_text()
    assert said == "\n\n".join(str(statement) for statement in model.privacy_.values()) + "\n"
    assert "123456789" not in (tmp_path / "model" / "model.json").read_text()


def test_folder_of_a_model_without_privacy_says_so(tmp_path):
    table = pd.DataFrame(X, columns=COLUMNS)
    model = fh.FederatedDROClassifier(rounds=1, label_cost=math.inf).fit(table, Y)
    model.save(tmp_path)
    back = fh.FederatedDROClassifier.load(tmp_path)
    assert back.privacy_ is None
    assert back.label_cost == math.inf
    assert back.feature_names_in_.tolist() == COLUMNS
    assert (back.predict(table) == model.predict(table)).all()
    assert "No privacy" in (tmp_path / "privacy.txt").read_text()


def _change(folder, **changes):
    path = folder / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def _lower_epsilon(folder):
    content = json.loads((folder / "model.json").read_text())
    content["privacy"][0]["statement"]["epsilon"] = 0.1
    (folder / "model.json").write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda folder: (folder / "model.json").unlink(), "No such file"),
        (lambda folder: only_arrays(folder).unlink(), "No such file"),
        (lambda folder: (folder / "model.json").write_text("{"), "model.json|Expecting"),
        (lambda folder: only_arrays(folder).write_bytes(b"other"), "not the file that model.json was written with"),
        (lambda folder: _change(folder, format=2), "not of format 1"),
        (lambda folder: _change(folder, classes=["a", "b"]), "coef .* not an array of"),
        (lambda folder: _change(folder, classes=None), "unsized"),
        (lambda folder: _change(folder, feature_names=["one"]), "names 1 features"),
        (lambda folder: (folder / "model.json").write_text("[" * 100_000), "RecursionError"),
        (lambda folder: _change(folder, arrays="../other"), "not the checksum of a file"),
        (lambda folder: _change(folder, parameters={"method": "dp-dro", "rate": 1}), "rate|label_cost"),
        (_lower_epsilon, "epsilon stated for site a does not follow"),
    ],
)
def test_damaged_folders_are_refused(tmp_path, fitted, harm, message):
    fitted.save(tmp_path)
    harm(tmp_path)
    with pytest.raises(fh.InvalidInput, match=re.escape(str(tmp_path)) + f".*({message})"):
        fh.FederatedDROClassifier.load(tmp_path)


def _state(field, value):
    def harm(folder):
        content = json.loads((folder / "model.json").read_text())
        content["privacy"][1]["statement"][field] = value
        (folder / "model.json").write_text(json.dumps(content))

    return harm


def _parameter(field, value):
    def harm(folder):
        content = json.loads((folder / "model.json").read_text())
        content["parameters"][field] = value
        (folder / "model.json").write_text(json.dumps(content))

    return harm


def _all_samples(samples):
    """More rows for the same noise: the epsilons stay, the sigmas do not follow."""

    def harm(folder):
        content = json.loads((folder / "model.json").read_text())
        for stored in content["privacy"]:
            stored["statement"]["samples"] = samples
        (folder / "model.json").write_text(json.dumps(content))

    return harm


CONTRADICTIONS = [
    (lambda folder: _change(folder, privacy=None), "'dp-dro' is private, and the statements say otherwise"),
    (lambda folder: _change(folder, privacy=[]), "not one privacy statement for each site"),
    (lambda folder: _change(folder, sites=["a", "b", "d"]), "not one privacy statement|not an array"),
    (lambda folder: _change(folder, bounds="data"), "the bounds are declared, and the file calls them data"),
    (lambda folder: _change(folder, rounds_done=19), "rounds in the privacy statement of site a"),
    (lambda folder: _change(folder, rounds_done=21), "more rounds done"),
    (lambda folder: _change(folder, requested={"epsilon": 1.0, "delta": 1e-5}), "each_round|requested"),
    (_parameter("feature_bounds", "data"), "the bounds are data, and the file calls them declared"),
    (_parameter("feature_bounds", [0.0, 1.0]), "not those that were declared"),
    (_parameter("rounds", 10), "more rounds done"),
    (_parameter("label_cost", 0.7), "each_round in the privacy statement of site a"),
    (_parameter("classes", ["setosa", "versicolor", "virginica"]), "also_not_covered"),
    (_state("bounds", "data"), "bounds in the privacy statement of site b"),
    (_state("secure_noise", True), "secure_noise in the privacy statement"),
    (_state("requested", None), "requested in the privacy statement"),
    (_state("epsilon_paper", 1.0), "epsilon_paper stated"),
    (_all_samples(5000), "each_round in the privacy statement"),
]


@pytest.mark.parametrize(("harm", "message"), CONTRADICTIONS, ids=[message for _, message in CONTRADICTIONS])
def test_a_file_that_contradicts_itself_is_refused(tmp_path, fitted, harm, message):
    fitted.save(tmp_path)
    harm(tmp_path)
    with pytest.raises(fh.InvalidInput, match=f"model folder: .*({message})"):
        fh.FederatedDROClassifier.load(tmp_path)


def test_the_price_of_estimated_bounds_must_follow_from_the_share(tmp_path, estimated):
    estimated.save(tmp_path)
    assert fh.FederatedDROClassifier.load(tmp_path).privacy_ == estimated.privacy_
    content = json.loads((tmp_path / "model.json").read_text())
    for place, value in (("share", 0.4), ("outer", [0.0, 15.0]), ("bins", 16)):
        changed = json.loads(json.dumps(content))
        changed["parameters"]["feature_bounds"][place] = value
        (tmp_path / "model.json").write_text(json.dumps(changed))
        with pytest.raises(fh.InvalidInput, match=r"(once|each_round|bounds_found) in the privacy statement of site a"):
            fh.FederatedDROClassifier.load(tmp_path)


def test_bounds_beyond_the_outer_range_are_refused(tmp_path, estimated):
    estimated.save(tmp_path)
    arrays = files.read_arrays(only_arrays(tmp_path))
    arrays["high"][0] = 17.0
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    checksum = hashlib.sha256(buffer.getvalue()).hexdigest()
    (tmp_path / f"arrays-{checksum[:16]}.npz").write_bytes(buffer.getvalue())
    _change(tmp_path, arrays=checksum)
    with pytest.raises(fh.InvalidInput, match="outside the outer ranges"):
        fh.FederatedDROClassifier.load(tmp_path)


@pytest.mark.parametrize("wrong", [None, [], {}, 3, -1.5, "x", [[1]], {"a": {}}, True], ids=str)
def test_wrong_types_give_the_message_and_nothing_else(tmp_path, fitted, wrong):
    """Every entry of the file, and of what it nests, replaced in turn; a value that was right already may load."""
    fitted.save(tmp_path)
    content = json.loads((tmp_path / "model.json").read_text())
    refused = 0
    for keys in _places(content):
        changed = json.loads(json.dumps(content))
        inner = changed
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = wrong
        (tmp_path / "model.json").write_text(json.dumps(changed))
        try:
            fh.FederatedDROClassifier.load(tmp_path)
        except fh.InvalidInput as error:
            refused += error.name == "model folder"
    assert refused > 50


def _places(content, above=()):
    for key, value in content.items() if isinstance(content, dict) else enumerate(content):
        yield (*above, key)
        if isinstance(value, dict | list):
            yield from _places(value, (*above, key))


class Killed(BaseException):
    pass


@pytest.mark.parametrize("steps", range(6))
def test_saving_over_a_model_leaves_the_old_one_or_the_new_one(tmp_path, monkeypatch, fitted, steps):
    """Cut short after each change to the folder in turn; what is there is whole, and no statement is of another."""
    other = private(random_state=4, rounds=10).fit(X, Y, clients=SITES)
    fitted.save(tmp_path)
    left = steps

    def counted(function):
        def wrapped(*arguments, **named):
            nonlocal left
            if left == 0:
                raise Killed
            left -= 1
            return function(*arguments, **named)

        return wrapped

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", counted(os.replace))
        patch.setattr("pathlib.Path.unlink", counted(Path.unlink))
        with contextlib.suppress(Killed):
            other.save(tmp_path)
    found = fh.FederatedDROClassifier.load(tmp_path)
    expected = fitted if steps < 3 else other
    assert (found.coef_ == expected.coef_).all()
    assert found.privacy_ == expected.privacy_
    said = tmp_path / "privacy.txt"
    if said.exists():
        assert said.read_text() == "\n\n".join(map(str, expected.privacy_.values())) + "\n"
    other.save(tmp_path)
    assert fh.FederatedDROClassifier.load(tmp_path).privacy_ == other.privacy_
    assert len(list(tmp_path.glob("arrays-*.npz"))) == 1

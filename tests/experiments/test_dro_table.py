"""The comparison of methods: metrics against scikit-learn, choice by folds alone, resume, and what is refused."""

import dataclasses
import functools
import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

from fedhedge.algorithms import DpSgd
from fedhedge.cli import main
from fedhedge.experiments import dro_table
from fedhedge.experiments.dro_methods import METHODS, Method
from fedhedge.experiments.dro_settings import Setting, small_tables
from fedhedge.experiments.dro_table import Size, run
from fedhedge.experiments.registry import EXPERIMENTS
from fedhedge.experiments.selection import accuracy, macro_f1
from fedhedge.privacy import gaussian_mu
from fedhedge.simulation.checkpoint import CheckpointMismatch

labels = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30)


@given(labels)
def test_metrics_are_scikit_learn_s(pairs):
    true, predicted = (np.array(column, np.int32) for column in zip(*pairs, strict=True))
    assert macro_f1(true, predicted) == pytest.approx(f1_score(true, predicted, average="macro"))
    assert accuracy(true, predicted) == pytest.approx(accuracy_score(true, predicted))


def test_the_budget_is_the_exact_total_of_the_paper_s_noise():
    """3.101 for epsilon 0.5 a round at delta 1e-6 over 50 rounds, which the paper states as 3.7."""
    assert small_tables("unit")[0].privacy.epsilon == pytest.approx(3.101, abs=5e-4)
    for method in METHODS:
        if method.private:
            for candidate in method.candidates(small_tables("unit")[0].privacy, 50):
                on_lambda = getattr(candidate, "lambda_noise", 0.0)
                mu = 50 * (candidate.noise**-2 + (on_lambda**-2 if on_lambda else 0.0))
                assert mu**0.5 == pytest.approx(gaussian_mu(small_tables("unit")[0].privacy.epsilon, 1e-6), rel=1e-6)


def steps(*values):
    """Candidates that compile fast."""
    return lambda privacy, rounds: tuple(DpSgd.calibrated(privacy, rounds, step=value) for value in values)


METHODS_HERE = (Method("dp-sgd", "SGD", steps(1.0, 4.0)), Method("dp-dro", "DP-Fed DRO, default", steps(2.0)))
TINY = Size((0, 1), 2, (Setting("iris", "iris", "unit", "macro-F1", 5, 0.5),), METHODS_HERE)


@functools.cache
def made(out):
    return run(TINY, out, quiet=True)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("table")


def test_a_table_and_its_files(out, capsys):
    table = made(out)
    scores, apart = (pd.read_csv(out / f"{name}.csv") for name in ("scores", "differences"))
    assert len(scores) == 2 * 2
    for _, line in table.iterrows():
        values = scores[scores.method == line["method"]]["value"]
        assert line["mean"] == pytest.approx(values.mean())
        assert line["error"] == pytest.approx(values.std(ddof=1) / 2**0.5)
    ours, theirs = (scores[scores.method == name]["value"].to_numpy() for name in ("dp-dro", "dp-sgd"))
    assert apart.loc[0, "difference"] == pytest.approx((ours - theirs).mean())
    text = (out / "table.txt").read_text()
    assert "DP-Fed DRO, default" in text
    assert "for the whole run, exactly" in text
    assert capsys.readouterr().out == ""


def test_finished_cells_are_kept_and_those_of_another_table_refused(out, monkeypatch):
    before = made(out)

    def never(*arguments):
        raise AssertionError("computed again")

    monkeypatch.setattr(dro_table, "_computed", never)
    pd.testing.assert_frame_equal(run(TINY, out, quiet=True), before)
    with pytest.raises(CheckpointMismatch, match=r"dp-sgd\.json is of another table: .*seeds"):
        run(dataclasses.replace(TINY, seeds=(0, 2)), out, quiet=True)


def test_the_choice_looks_at_folds_only(out):
    """Each chosen candidate has the best mean on the folds; a tie goes to the first."""
    made(out)
    for path in (out / "cells").iterdir():
        cell = json.loads(path.read_text())
        for chosen, scores in zip(cell["chosen"], cell["fold_scores"], strict=True):
            assert chosen == scores.index(max(scores))


def test_every_experiment_is_listed_and_unknown_names_are_refused(capsys):
    assert main(["reproduce", "--list"]) == 0
    printed = capsys.readouterr().out
    for name, entry in EXPERIMENTS.items():
        assert name in printed
        assert callable(entry.load())
    assert main(["reproduce", "dro-tabel"]) == 2
    assert "did you mean dro-table?" in capsys.readouterr().err


DAMAGES = {
    "truncated": lambda cell: json.dumps(cell)[:40].encode(),
    "empty": lambda cell: b"",
    "bytes": lambda cell: bytes(range(256)),
    "list": lambda cell: b"[]",
    "no values": lambda cell: json.dumps({key: cell[key] for key in ("described", "chosen", "fold_scores")}).encode(),
    "short": lambda cell: json.dumps(cell | {"values": cell["values"][:1]}).encode(),
    "no numbers": lambda cell: json.dumps(cell | {"values": [None, "x"]}).encode(),
    "not finite": lambda cell: json.dumps(cell | {"values": [math.nan, 1.0]}).encode(),
    "no such candidate": lambda cell: json.dumps(cell | {"chosen": [0, 99]}).encode(),
    "ragged scores": lambda cell: json.dumps(cell | {"fold_scores": [[1.0], [1.0, 2.0]]}).encode(),
    "description": lambda cell: json.dumps(cell | {"described": 3}).encode(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cell_is_named(out, damage, monkeypatch):
    made(out)
    monkeypatch.setattr(dro_table, "_computed", lambda *_: pytest.fail("computed"))
    path = out / "cells" / "iris-dp-dro.json"
    before = path.read_bytes()
    try:
        path.write_bytes(DAMAGES[damage](json.loads(before)))
        with pytest.raises(CheckpointMismatch, match=r"iris-dp-dro\.json is (damaged|of another table)"):
            run(TINY, out, quiet=True)
    finally:
        path.write_bytes(before)


def test_a_damaged_cell_exits_with_2(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(dro_table, "_computed", lambda *_: pytest.fail("computed"))
    cells = tmp_path / "cells"
    cells.mkdir()
    method = METHODS[0]
    (cells / f"iris-{method.name}.json").write_text("[]")
    (tmp_path / "experiment.json").write_text('{"experiment": "dro-table", "fast": true}')
    assert main(["reproduce", "dro-table", "--fast", "--out", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert "a part only: iris, wine (2 of 8 columns), 3 of 10 seeds, 2 folds of 3 for choosing" in said.out
    assert f"iris-{method.name}.json is damaged" in said.err


def test_an_out_that_cannot_be_a_folder_is_refused_before_any_work(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(dro_table, "paper", lambda *_, **__: pytest.fail("worked"))
    file = tmp_path / "file"
    file.write_text("mine")
    for path in (file, file / "below"):
        assert main(["reproduce", "dro-table", "--out", str(path)]) == 2
        said = capsys.readouterr()
        assert f"--out: received '{path}'; allowed: a folder, or a place for one" in said.err
        assert said.out == ""
    assert file.read_text() == "mine"

"""`fedhedge reproduce` and its pages: names, whose folder it is, and what may share a page."""

import json
from pathlib import Path

import pytest

from fedhedge.checks import InvalidInput
from fedhedge.cli import main
from fedhedge.experiments import federage_theory
from fedhedge.experiments.registry import EXPERIMENTS, PARTS, whole
from fedhedge.report.section import Section, write_section

NAME = "federage-theory"


@pytest.fixture
def work(monkeypatch):
    """Replaces the experiment by one that writes a section at once; the list of folders it was given."""
    seen = []

    def made(out, *, fast, quiet):
        seen.append((out, fast))
        write_section(out, Section(NAME, "A title", ["A text."], "a command"))

    monkeypatch.setattr(federage_theory, "main", made)
    return seen


def reproduce(out, *more):
    return main(["reproduce", NAME, "--out", str(out), "--quiet", *more])


def test_a_part_is_made_with_its_whole():
    assert all(whole(part) == name and name in EXPERIMENTS for part, name in PARTS.items())
    assert all(whole(name) == name for name in EXPERIMENTS)


def test_an_unknown_name_is_told_the_nearest_and_where_all_are(capsys):
    assert main(["reproduce", "dro-fig22"]) == 2
    assert "(did you mean dro-fig2? --list says" in capsys.readouterr().err
    assert main(["reproduce", "xyz"]) == 2
    assert "(--list says" in capsys.readouterr().err


def test_a_folder_is_taken_again_by_the_same_experiment_alone(work, tmp_path, capsys):
    assert reproduce(tmp_path / "a") == reproduce(tmp_path / "a") == 0
    assert reproduce(tmp_path / "a", "--fast") == 2
    assert f"{NAME} was begun there without --fast" in capsys.readouterr().err
    assert main(["reproduce", "dro-fig2", "--out", str(tmp_path / "a")]) == 2
    said = capsys.readouterr().err
    assert "where dro-fig2 was begun" in said
    assert f"another experiment was begun there, {NAME})" in said
    assert work == [(tmp_path / "a", False)] * 2
    assert reproduce(tmp_path / "b", "--fast") == 0
    assert reproduce(tmp_path / "b") == 2
    assert f"{NAME} was begun there with --fast" in capsys.readouterr().err


@pytest.mark.parametrize("held", ["thesis.tex", "experiment.json"])
def test_a_folder_of_something_else_is_refused_and_left_alone(work, tmp_path, capsys, held):
    (tmp_path / held).write_text("mine")
    assert reproduce(tmp_path) == 2
    assert "--out: received" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [held]
    assert (tmp_path / held).read_text() == "mine"
    assert work == []


def test_a_new_folder_goes_again_when_nothing_could_be_begun(monkeypatch, tmp_path, capsys):
    def without_data(out, *, fast, quiet):
        raise InvalidInput("FEDHEDGE_DATA", "nowhere", "a folder of data sets")

    monkeypatch.setattr(federage_theory, "main", without_data)
    assert reproduce(tmp_path / "runs") == 2
    assert "FEDHEDGE_DATA: received" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine").mkdir()
    assert reproduce(tmp_path / "mine") == 2
    assert (tmp_path / "mine").exists()


def test_sections_share_a_page_and_nothing_else_does(work, tmp_path, capsys):
    for name in ("a", "b"):
        assert reproduce(tmp_path / name) == 0
    page = tmp_path / "page.html"
    assert main(["report", str(tmp_path / "a"), str(tmp_path / "b"), "-o", str(page)]) == 0
    assert page.read_text().count("A text.") == 2
    (tmp_path / "empty").mkdir()
    page.unlink()
    assert main(["report", str(tmp_path / "a"), str(tmp_path / "empty"), "-o", str(page)]) == 2
    said = capsys.readouterr().err
    assert "empty" in said
    assert "no finished section" in said
    assert not page.exists()
    assert json.loads((tmp_path / "a" / "experiment.json").read_text())["experiment"] == NAME


def test_a_page_takes_each_folder_once_and_no_options_of_runs(work, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert reproduce("a") == 0
    assert main(["report", "a", "./a/", "-o", "page.html"]) == 2
    assert "RUN: received 'a'; allowed: each folder once" in capsys.readouterr().err
    for option, value in {"--rare": "0,1", "--target": "0", "--split": "train"}.items():
        assert main(["report", "a", "-o", "page.html", option, value]) == 2
        assert f"{option}: received" in capsys.readouterr().err
    assert not Path("page.html").exists()
    assert main(["report", "a", "-o", "page.html", "--split", "test"]) == 0

"""`fedhedge compare` and `fedhedge report`, which read finished runs."""

import re
from pathlib import Path

import fedhedge as fh
from fedhedge.cli import main


def test_compare_and_report_read_finished_runs(finished, file, capsys, complaint, monkeypatch):
    assert main(["run", file, "--quiet", "--set", "algorithm={name='FedProx'}", "--out", "prox"]) == 0
    assert main(["compare", str(finished), "prox/run.npz", "--target", "0.1", "--rare", "0,1"]) == 0
    said = capsys.readouterr().out
    mean = fh.Run.load(finished / "run.npz").clients().mean()
    assert re.search(rf"FedAvg +{100 * mean:.1f}", said)
    assert "FedProx" in said

    here = Path.cwd()
    monkeypatch.undo()
    monkeypatch.chdir(here)
    assert main(["report", str(finished), "prox", "-o", "both.html", "--title", "Two methods"]) == 0
    page = Path("both.html").read_text()
    assert "Two methods" in page
    assert "FedProx" in page
    assert main(["compare", "nowhere"]) == 2
    assert "RUN: received 'nowhere'" in complaint()
    Path("broken.npz").write_bytes(b"no run")
    assert main(["report", "broken.npz", "-o", "page.html"]) == 2
    assert "not a file that this version can read" in complaint()


def test_seeds_are_one_line_and_what_else_differs_is_named(finished, file, capsys):
    assert main(["run", file, "--quiet", "--set", "seed=1"]) == 0
    assert main(["compare", str(finished), "runs/small-1"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    means = [fh.Run.load(folder / "run.npz").clients().mean() for folder in (finished, Path("runs/small-1"))]
    assert re.search(rf"FedAvg +{50 * sum(means):.1f} . ", said.out)
    assert main(["run", file, "--quiet", "--set", "batch_size=8", "--out", "other"]) == 0
    assert main(["compare", str(finished), "other"]) == 0
    assert capsys.readouterr().err == "fedhedge: warning: the runs differ in more than the method: batch_size\n"

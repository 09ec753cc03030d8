"""`fedhedge run`, end to end on embedded data: its files, resuming, and what it refuses."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fedhedge as fh
from fedhedge.cli import main
from fedhedge.config import load_config
from fedhedge.simulation import checkpoint

FILES = ("history.parquet", "params.npz", "participation.parquet", "run.npz", "summary.json")


def content(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def test_a_run_leaves_its_results_and_the_same_command_leaves_it_alone(file, capsys):
    assert main(["run", file]) == 0
    folder = Path("runs/small-0")
    said = capsys.readouterr().out
    assert said.startswith("runs/small-0: 20 rounds, ")
    assert all((folder / name).is_file() for name in FILES)

    expected = fh.simulate(**load_config(file).simulation())
    with np.load(folder / "params.npz", allow_pickle=False) as params:
        assert sorted(params) == ["bias", "weight"]
        for name in params:
            np.testing.assert_array_equal(params[name], expected.params[name])
    pd.testing.assert_frame_equal(pd.read_parquet(folder / "history.parquet"), expected.history)
    pd.testing.assert_frame_equal(pd.read_parquet(folder / "participation.parquet"), expected.participation)
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["configuration"]["algorithm"] == {"name": "FedAvg", "step": 0.1, "ball": None}
    assert summary["counts"]["uploads"] == len(expected.participation)
    assert summary["metrics"]["test/accuracy"] == expected.summary()["metrics"]["test/accuracy"]
    assert f"worst client {expected.clients().min():.4f}" in said

    before = content(folder)
    assert main(["run", file]) == 0
    assert "this run is finished" in capsys.readouterr().out
    assert content(folder) == before


def test_the_default_folder_has_the_name_of_the_file_and_the_seed(file, capsys):
    assert main(["run", file, "--set", "seed=3", "--set", "rounds=10", "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert json.loads(Path("runs/small-3/summary.json").read_text())["settings"]["rounds"] == 10
    assert main(["run", file, "--set", "rounds=10", "--out", "else/where", "--quiet"]) == 0
    assert Path("else/where/params.npz").is_file()


@pytest.mark.parametrize("done", [True, False])
def test_another_configuration_in_the_same_folder_is_refused_by_key(finished, file, complaint, done):
    if not done:
        (finished / "summary.json").unlink()
    before = content(finished)
    assert main(["run", file, "--set", "algorithm.step=0.2", "--set", "weighting=rows"]) == 2
    said = complaint()
    assert "algorithm.step is 0.1 there and 0.2 here" in said
    assert 'weighting is "uniform" there and "rows" here' in said
    assert content(finished) == before


def test_a_folder_with_a_foreign_summary_is_refused(file, complaint):
    Path("mine").mkdir()
    Path("mine/summary.json").write_text("[1]")
    assert main(["run", file, "--out", "mine"]) == 2
    assert "--out: received 'mine'" in complaint()


def interrupt_after_the_first_checkpoint(monkeypatch):
    def write_and_interrupt(*arguments):
        write(*arguments)
        signal.raise_signal(signal.SIGINT)

    write = checkpoint.write
    monkeypatch.setattr(checkpoint, "write", write_and_interrupt)
    monkeypatch.setattr("fedhedge.simulation.driver.CHECKPOINT_SECONDS", 0.0)


def test_control_c_says_how_to_resume_and_the_same_command_does(finished, file, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt_after_the_first_checkpoint(patch)
        assert main(["run", file, "--out", "again"]) == 130
    said = capsys.readouterr().err
    assert said == "fedhedge: interrupted; the same command goes on from the last checkpoint in again\n"
    _, arrays = checkpoint.read(Path("again/checkpoint.npz"))
    assert arrays["done"][0] == 10
    assert main(["run", file, "--out", "again", "--quiet"]) == 0
    same = ("history.parquet", "params.npz", "participation.parquet", "run.npz")
    assert [content(Path("again"))[name] for name in same] == [content(finished)[name] for name in same]


# The command, with a checkpoint after every chunk of rounds instead of every second.
COMMAND = """
import sys
from fedhedge import cli
from fedhedge.simulation import driver
driver.CHECKPOINT_SECONDS = 0.0
sys.exit(cli.main(sys.argv[1:]))
"""


def start_and_kill(arguments, folder, cache, after):
    """Run the command in a process of its own and kill it `after` seconds beyond a checkpoint and the history."""
    environment = os.environ | {"XDG_CACHE_HOME": str(cache)}
    history = folder / "history.parquet"
    done = rounds_done(folder)
    process = subprocess.Popen([sys.executable, "-c", COMMAND, *arguments], env=environment, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while (rounds_done(folder) == done or not history.exists()) and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[1].decode()
        time.sleep(0.01)
    time.sleep(after)
    process.kill()
    assert process.wait() == -signal.SIGKILL


def rounds_done(folder):
    path = folder / "checkpoint.npz"
    return int(checkpoint.read(path)[1]["done"][0]) if path.exists() else 0


def resumes_bit_for_bit(file, cache, algorithm, kills):
    rounds = 2500
    arguments = ["run", file, "--quiet", "--set", f"rounds={rounds}", "--set", "evaluate_every=50"]
    arguments += ["--set", f"algorithm={{name='{algorithm}'}}", "--out"]
    assert main([*arguments, "whole"]) == 0
    for after in kills:
        start_and_kill([*arguments, "killed"], Path("killed"), cache, after)
        assert 0 < rounds_done(Path("killed")) < rounds
        assert 0 < len(pd.read_parquet("killed/history.parquet")) < len(pd.read_parquet("whole/history.parquet"))
        assert not Path("killed/summary.json").exists()
    assert main([*arguments, "killed"]) == 0
    whole, resumed = content(Path("whole")), content(Path("killed"))
    for name in ("history.parquet", "params.npz", "participation.parquet", "run.npz", "checkpoint.npz"):
        assert whole[name] == resumed[name], name


def test_a_killed_run_resumes_bit_for_bit(file, cache):
    resumes_bit_for_bit(file, cache, "FedeRage", [0.0])


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["FedeRage", "Scaffold"])
def test_a_run_killed_several_times_resumes_bit_for_bit(file, cache, algorithm):
    resumes_bit_for_bit(file, cache, algorithm, [0.0, 0.1, 0.2])


def test_a_run_that_diverges_fails_with_its_cause(file, complaint):
    assert main(["run", file, "--quiet", "--set", "algorithm.step=1e38"]) == 1
    said = complaint()
    assert re.search(r"FedAvg, round \d+, .* is not finite; the likely cause is a step that is too large", said)
    assert not Path("runs/small-0/summary.json").exists()


def test_files_of_data_that_are_missing_fail_with_the_command_that_fetches_them(file, complaint):
    assert main(["run", file, "--set", "data.source=mnist", "--set", "data.root=nowhere"]) == 1
    assert "fedhedge data fetch mnist" in complaint()


@pytest.mark.parametrize("assignment", ["algorithm.stepp=1", "rounds=0", "partition.classes_per_client=11"])
def test_a_configuration_that_cannot_be_used_is_refused_before_a_folder_is_made(file, complaint, assignment):
    assert main(["run", file, "--set", assignment]) == 2
    assert f"{assignment.split('=')[0]}: received" in complaint()
    assert not Path("runs").exists()


def test_warnings_are_one_line_each(file, capsys):
    assert main(["run", file, "--quiet", "--set", "algorithm={name='FedeRage'}"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert said[0].startswith("fedhedge: warning: FedeRage: beta needs about ")


def test_splits_without_a_row_are_left_out_of_what_is_said(file, capsys):
    arguments = ["--set", "partition.validation=0", "--set", "evaluate_on=['train', 'validation']"]
    assert main(["run", file, *arguments]) == 0
    said = capsys.readouterr().out
    assert "train accuracy" in said
    assert "validation" not in said
    assert main(["run", file, "--set", "evaluate_on=[]", "--out", "unseen"]) == 0
    assert "accuracy" not in capsys.readouterr().out


def test_the_example_in_the_help_is_a_configuration(file, capsys):
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    said = capsys.readouterr().out
    Path("helped.toml").write_text(said.split("a configuration file:\n")[1].split("\nchanged from")[0])
    config = load_config("helped.toml", ["rounds=200", "algorithm.alpha=0.1"])
    assert (config.options.rounds, config.algorithm.alpha, config.number_of_clients) == (200, 0.1, 30)


@pytest.mark.data
def test_the_example_of_the_paper_runs(cache, real_data, tmp_path, capsys):
    example = str(Path(__file__).parents[2] / "examples" / "fashion-skewed.toml")
    arguments = ["--set", "rounds=50", "--set", f"data.root={real_data}", "--out", str(tmp_path / "out"), "--quiet"]
    assert main(["run", example, *arguments]) == 0
    metrics = json.loads((tmp_path / "out" / "summary.json").read_text())["metrics"]
    assert metrics["test/accuracy"] > 0.2
    assert "fashion-skewed" in (tmp_path / "out" / "report.html").read_text()
    assert any((tmp_path / "out" / "plots").glob("*.svg"))

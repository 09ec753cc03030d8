"""The command line, end to end on embedded data."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest

import fedhedge as fh
from fedhedge import report
from fedhedge.cli import main
from fedhedge.config import load_config
from fedhedge.simulation import checkpoint

TEXT = """
rounds = 20
evaluate_every = 10
[data]
source = "digits"
[partition]
name = "ByLabel"
clients = 12
[availability]
name = "FixedSize"
size = 3
[model]
name = "Linear"
[algorithm]
name = "FedAvg"
"""
FILES = ("history.parquet", "params.npz", "participation.parquet", "run.npz", "summary.json")
HEAVY = ("jax", "numpy", "pandas", "scipy", "sklearn", "matplotlib", "pyarrow", "tqdm")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache folder of our own, with what JAX compiles shared by all tests here."""
    folder = tmp_path_factory.mktemp("cache")
    before = jax.config.jax_compilation_cache_dir, jax.config.jax_persistent_cache_min_compile_time_secs
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder
    jax.config.update("jax_compilation_cache_dir", before[0])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", before[1])


@pytest.fixture
def file(tmp_path, monkeypatch, cache):
    """A configuration file in the working directory; reports, which take longer than these runs, are left out."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(report, "write_plots", lambda *_, **__: None)
    monkeypatch.setattr(report, "write_report", lambda *_, **__: None)
    Path("small.toml").write_text(TEXT)
    return "small.toml"


@pytest.fixture
def finished(file):
    """The folder of a finished run of the file."""
    assert main(["run", file, "--quiet"]) == 0
    return Path("runs/small-0")


def complaint(capsys):
    """The one line on standard error."""
    said = capsys.readouterr().err
    assert said.startswith("fedhedge: error: ")
    assert said.count("\n") == 1
    return said


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
def test_another_configuration_in_the_same_folder_is_refused_by_key(finished, file, capsys, done):
    if not done:
        (finished / "summary.json").unlink()
    before = content(finished)
    assert main(["run", file, "--set", "algorithm.step=0.2", "--set", "weighting=rows"]) == 2
    said = complaint(capsys)
    assert "algorithm.step is 0.1 there and 0.2 here" in said
    assert 'weighting is "uniform" there and "rows" here' in said
    assert content(finished) == before


def test_a_folder_with_a_foreign_summary_is_refused(file, capsys):
    Path("mine").mkdir()
    Path("mine/summary.json").write_text("[1]")
    assert main(["run", file, "--out", "mine"]) == 2
    assert "--out: received 'mine'" in complaint(capsys)


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


def test_a_run_that_diverges_fails_with_its_cause(file, capsys):
    assert main(["run", file, "--quiet", "--set", "algorithm.step=1e38"]) == 1
    said = complaint(capsys)
    assert re.search(r"FedAvg, round \d+, .* is not finite; the likely cause is a step that is too large", said)
    assert not Path("runs/small-0/summary.json").exists()


def test_files_of_data_that_are_missing_fail_with_the_command_that_fetches_them(file, capsys):
    assert main(["run", file, "--set", "data.source=mnist", "--set", "data.root=nowhere"]) == 1
    assert "fedhedge data fetch mnist" in complaint(capsys)


@pytest.mark.parametrize("assignment", ["algorithm.stepp=1", "rounds=0", "partition.classes_per_client=11"])
def test_a_configuration_that_cannot_be_used_is_refused_before_a_folder_is_made(file, capsys, assignment):
    assert main(["run", file, "--set", assignment]) == 2
    assert f"{assignment.split('=')[0]}: received" in complaint(capsys)
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


def test_only_debug_shows_a_traceback(file, capsys, monkeypatch):
    assert main(["run", file, "--set", "rounds=0", "--debug"]) == 2
    assert main(["--debug", "run", file, "--set", "rounds=0"]) == 2
    assert capsys.readouterr().err.count("Traceback (most recent call last)") == 2

    def defect(*_, **__):
        raise KeyError("nothing")

    monkeypatch.setattr(fh.simulation.driver.Simulation, "run", defect)
    assert main(["run", file]) == 1
    assert complaint(capsys) == "fedhedge: error: unexpected KeyError: 'nothing' (--debug shows where)\n"


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["run"], ["run", "a.toml", "--sett", "x"], ["data", "fetch"]])
def test_bad_arguments_exit_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: fedhedge" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ["run", "demo", "compare", "report", "data", "availability", "Exit status", "--debug"]),
        (["run"], ["CONFIG.toml", "--set", "--out", "--quiet", "params.npz", "[partition]", "algorithm.alpha=0.1"]),
        (["demo"], ["--out", "--quiet"]),
        (["compare"], ["RUN", "--target", "--rare"]),
        (["report"], ["RUN", "--out", "--title"]),
        (["data"], ["list", "fetch", "check", "FEDHEDGE_DATA"]),
        (["data", "list"], ["--root"]),
        (["data", "fetch"], ["SOURCE", "--root"]),
        (["data", "check"], ["SOURCE", "--root"]),
        (["availability", "describe"], ["CONFIG.toml", "--set"]),
    ],
)
def test_help_explains_each_command(arguments, expected, capsys):
    with pytest.raises(SystemExit) as caught:
        main([*arguments, "--help"])
    assert caught.value.code == 0
    said = capsys.readouterr().out
    assert all(word in said for word in expected)


def test_the_example_in_the_help_is_a_configuration(file, capsys):
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    said = capsys.readouterr().out
    Path("helped.toml").write_text(said.split("a configuration file:\n")[1].split("\nchanged from")[0])
    config = load_config("helped.toml", ["rounds=200", "algorithm.alpha=0.1"])
    assert (config.options.rounds, config.algorithm.alpha, config.number_of_clients) == (200, 0.1, 30)


def test_help_waits_for_no_numerical_library():
    command = [sys.executable, "-X", "importtime", "-m", "fedhedge", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "usage: fedhedge" in done.stdout
    imported = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
    assert "fedhedge.cli.run" in imported
    assert not imported & set(HEAVY)


def test_data_list_and_check(file, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FEDHEDGE_DATA", str(tmp_path))
    assert main(["data", "list"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert lines["digits"].endswith("True")
    assert lines["mnist"].endswith("False")
    assert main(["data", "check", "iris"]) == 0
    assert main(["data", "check", "iris", "mnist"]) == 1
    assert capsys.readouterr().out.count("missing") == 4
    assert main(["data", "fetch", "iris"]) == 0
    assert "iris: nothing is missing" in capsys.readouterr().out
    assert main(["data", "check", "mnits"]) == 2
    assert "did you mean mnist?" in complaint(capsys)


@pytest.mark.data
def test_data_check_finds_a_damaged_file(file, real_data, capsys):
    assert main(["data", "check", "mnist", "--root", str(real_data)]) == 0
    assert capsys.readouterr().out.count(" ok") == 4
    Path("mnist").mkdir()
    for path in (real_data / "mnist").iterdir():
        Path("mnist", path.name).write_bytes(path.read_bytes())
    Path("mnist/t10k-labels-idx1-ubyte.gz").write_bytes(b"damaged")
    assert main(["data", "check", "mnist", "--root", "."]) == 1
    assert capsys.readouterr().out.count(" ok") == 3


def test_availability_describe_prints_the_law(file, capsys):
    law = "availability={name='Independent', probabilities=[0.5, 0.5, 0.0]}"
    arguments = ["--set", "partition.clients=3", "--set", law, "--set", "partition.classes_per_client=4"]
    assert main(["availability", "describe", file, *arguments]) == 0
    header, *rows, last = capsys.readouterr().out.splitlines()
    table = pd.DataFrame([row.split() for row in rows], columns=header.split())
    # Two fair coins: each client alone with 1/4, both with 1/4, nobody with 1/4.
    assert table["inclusion_probability"].astype(float).tolist() == [0.5, 0.5, 0.0]
    assert table["weight"].astype(float).tolist() == [0.5, 0.5, 0.0]
    assert last == "clients a round: 1 on average; rounds without any: 0.25"
    assert main(["availability", "describe", file, *arguments, "--set", "faults.lost=0.2"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "on top of that, each upload is lost with probability 0.2 ([faults])"
    )
    assert main(["availability", "describe", file, *arguments, "--plot", "weights.svg"]) == 0
    assert capsys.readouterr().out.endswith("plot: weights.svg\n")
    assert "Weight of each client, 50.0 % to 0.0 %; uniform 33.3 %" in Path("weights.svg").read_text()
    assert main(["availability", "describe", file, *arguments, "--plot", "weights.pdf"]) == 2
    assert "--plot: received 'weights.pdf'; allowed: a file name that ends in .png or .svg" in capsys.readouterr().err


def test_compare_and_report_read_finished_runs(finished, file, capsys, monkeypatch):
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
    assert "RUN: received 'nowhere'" in complaint(capsys)
    Path("broken.npz").write_bytes(b"no run")
    assert main(["report", "broken.npz", "-o", "page.html"]) == 2
    assert "not a file that this version can read" in complaint(capsys)


def test_demo_is_given_its_folder(file, monkeypatch, capsys):
    def record(out, *, quiet):
        seen.append((out, quiet))
        if len(seen) > 2:
            raise KeyboardInterrupt

    seen: list = []
    monkeypatch.setattr("fedhedge.experiments.demo.main", record)
    assert main(["demo"]) == 0
    assert main(["demo", "--out", "there", "--quiet"]) == 0
    assert seen == [(Path("runs/demo"), False), (Path("there"), True)]
    assert main(["demo"]) == 130
    assert capsys.readouterr().err == "fedhedge: interrupted; the same command goes on with what is in runs/demo\n"


@pytest.mark.data
def test_the_example_of_the_paper_runs(cache, real_data, tmp_path, capsys):
    example = str(Path(__file__).parent.parent / "examples" / "fashion-skewed.toml")
    arguments = ["--set", "rounds=50", "--set", f"data.root={real_data}", "--out", str(tmp_path / "out"), "--quiet"]
    assert main(["run", example, *arguments]) == 0
    metrics = json.loads((tmp_path / "out" / "summary.json").read_text())["metrics"]
    assert metrics["test/accuracy"] > 0.2
    assert "fashion-skewed" in (tmp_path / "out" / "report.html").read_text()
    assert any((tmp_path / "out" / "plots").glob("*.svg"))

"""What all commands share: help, exit statuses, tracebacks."""

import subprocess
import sys

import pytest

import fedhedge as fh
from fedhedge.cli import main

HEAVY = ("jax", "numpy", "pandas", "scipy", "sklearn", "matplotlib", "pyarrow", "tqdm")


def test_only_debug_shows_a_traceback(file, capsys, complaint, monkeypatch):
    assert main(["run", file, "--set", "rounds=0", "--debug"]) == 2
    assert main(["--debug", "run", file, "--set", "rounds=0"]) == 2
    assert capsys.readouterr().err.count("Traceback (most recent call last)") == 2

    def defect(*_, **__):
        raise KeyError("nothing")

    monkeypatch.setattr(fh.simulation.driver.Simulation, "run", defect)
    assert main(["run", file]) == 1
    assert complaint() == "fedhedge: error: unexpected KeyError: 'nothing' (--debug shows where)\n"


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


def test_help_waits_for_no_numerical_library():
    command = [sys.executable, "-X", "importtime", "-m", "fedhedge", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "usage: fedhedge" in done.stdout
    imported = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
    assert "fedhedge.cli.run" in imported
    assert not imported & set(HEAVY)

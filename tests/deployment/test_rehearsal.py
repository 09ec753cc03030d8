"""`fedhedge run` on the file of a federation: the simulation of what its sites would do."""

import json

import jax
import numpy as np
import pytest

import fedhedge as fh
from fedhedge import report
from fedhedge.checks import InvalidInput
from fedhedge.cli import main
from fedhedge.deployment.rehearsal import Rehearsal, load_rehearsal

BOUNDS = {"w": [-4.0, 6.0], "u": [-4.0, 6.0]}
TEXT = """\
rounds = 4
local_steps = 1
batch_size = "all"
evaluate_every = 2
evaluate_on = ["test"]
weighting = "rows"
data = {label = "kind"}
model = {name = "CrammerSinger"}
algorithm = {name = "DpDroAdmm"}
privacy = {epsilon = 4.0, delta = 1e-3}

[federation]
sites = ["north", "east", "south"]
classes = ["adelie", "chinstrap", "gentoo"]
features = {w = [-4.0, 6.0], u = [-4.0, 6.0]}
constant = 0.5
deadline = 3.0
asks = "law"
"""


def test_a_rehearsal_is_the_federation(small, federate):
    content = small.content({"name": "FedAvg"}, "Linear", weighting="rows")
    terms = {"features": BOUNDS, "constant": 0.5, "sites": ["south", "east", "north"]}
    run = federate(small.federation(content, **terms))
    content["data"] = {"label": "kind", "path": str(small.folder)}
    table = terms | {"classes": ["adelie", "chinstrap", "gentoo"]}
    rehearsal = fh.simulate(**Rehearsal(content | {"federation": table}, "small").simulation(), progress=False)
    for mine, theirs in zip(jax.tree.leaves(rehearsal.params), jax.tree.leaves(run.params), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-5)
    assert rehearsal.names == run.names
    assert rehearsal.feature_names == run.feature_names == ("w", "u", "constant")


@pytest.fixture
def file(small, tmp_path, monkeypatch):
    """A federation's file in the working directory; reports, which take longer than these runs, are left out."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(report, "write_plots", lambda *_, **__: None)
    monkeypatch.setattr(report, "write_report", lambda *_, **__: None)
    (tmp_path / "sites").symlink_to(small.folder)
    (tmp_path / "federation.toml").write_text(TEXT, encoding="utf-8")
    return "federation.toml"


def test_the_command_runs_the_file_of_a_federation(file, tmp_path, capsys):
    assert main(["run", file]) == 0
    said = capsys.readouterr().out
    assert "a simulation of this federation, with its sites' tables in sites" in said
    summary = json.loads((tmp_path / "runs" / "federation-0" / "summary.json").read_text())
    assert summary["settings"]["algorithm"]["noise"] > 0.0
    assert summary["configuration"]["federation"]["constant"] == 0.5
    assert main(["run", file]) == 0
    assert "this run is finished" in capsys.readouterr().out
    # Other columns are another run, and other deadlines are not.
    assert main(["run", file, "--set", "federation.deadline=9.0"]) == 0
    assert main(["run", file, "--set", "federation.features.u=[0.0, 6.0]"]) == 2
    assert "federation.features is" in capsys.readouterr().err


def test_a_table_that_is_not_there_is_named(file):
    found = load_rehearsal(file, ['federation.sites=["north", "west"]'])
    with pytest.raises(InvalidInput, match=r"a folder with west\.csv or west\.parquet") as refused:
        found.simulation()
    assert refused.value.name == "data.path"


def test_other_files_are_no_rehearsals(tmp_path):
    (tmp_path / "plain.toml").write_text("rounds = 3\n", encoding="utf-8")
    assert load_rehearsal(tmp_path / "plain.toml") is None

"""Real processes on loopback, TLS and keys on: crashes, stragglers, strangers, harm, and the model of a simulation."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest

import fedhedge as fh
from fedhedge.availability import Trace
from fedhedge.config.config import Config

pytest.importorskip("flwr", reason="flwr (extra `flower`) is not installed")
pytest.importorskip("opendp", reason="opendp (extra `flower`) is not installed")
from fedhedge.deployment.demo import ROUNDS
from fedhedge.deployment.flower.processes import free_port
from fedhedge.deployment.keys import make_keys, make_site_keys
from fedhedge.deployment.site_file import load_site

pytestmark = pytest.mark.deployment

# West does harm in one test, and is a site like the others in another.
SITES = ("east", "north", "south", "west")
HARM = ("has shape", "not finite", "above 1e+06", "a message that cannot be read")
# A machine that is busy elsewhere is no failure of ours.
PATIENCE = 300.0
FEDERATION = """\
rounds = 7
local_steps = 2
batch_size = 8
evaluate_every = 100
evaluate_on = ["test"]
data = {label = "kind"}
model = {name = "MLP", hidden = [4]}
algorithm = {name = "Scaffold"}

[federation]
sites = ["east", "north", "south", "west"]
features = ["u", "v", "w"]
classes = ["adelie", "chinstrap", "gentoo"]
deadline = 30.0
at_least = 2
"""
# A private method under signed masked sums; the budget of the federation lasts for its four rounds.
PRIVATE = """\
rounds = 4
local_steps = 1
batch_size = "all"
evaluate_every = 100
evaluate_on = ["test"]
data = {label = "kind"}
model = {name = "CrammerSinger"}
algorithm = {name = "DpDroAdmm"}
privacy = {epsilon = 4.0, delta = 1e-3}

[federation]
sites = ["east", "north", "south", "west"]
classes = ["adelie", "chinstrap", "gentoo"]
features = {u = [-4.0, 6.0], v = [-4.0, 6.0], w = [-4.0, 6.0]}
deadline = 45.0
at_least = 4

[federation.masking]
"""
BUDGET = """epsilon = EPSILON, delta = 1e-3, methods = ["DpDroAdmm"], row_bound = 1.0, least_noise = 1.0"""
SITE = """\
site = "{name}"
federation = "federation.toml"
table = "{table}"
state = "state-{name}"
server = "127.0.0.1:{port}"
certificate = "keys/ca.crt"
key = "{key}"
share = ["test"]
peers = "keys/sites"
accept = {{{accept}}}
"""


class Process:
    """A command of ours, its output, and its end."""

    def __init__(self, *arguments):
        # A pipe that nobody reads would stop the process once it is full.
        self._out = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process is asked for it
        self._process = subprocess.Popen(
            [sys.executable, "-u", *map(str, arguments)],
            stdout=self._out,
            stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )

    def read(self):
        size = os.fstat(self._out.fileno()).st_size
        return os.pread(self._out.fileno(), size, 0).decode()

    def wait_for(self, text):
        until = time.monotonic() + PATIENCE
        while text not in self.read():
            ended = self._process.poll()
            assert ended is None or text in self.read(), f"ended with {ended} before {text!r}:\n{self.read()}"
            assert time.monotonic() < until, f"no {text!r} in\n{self.read()}"
            time.sleep(0.1)

    def signal(self, number):
        self._process.send_signal(number)

    def kill(self):
        self._process.kill()
        self._process.wait()

    def end(self):
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()
        return self._process.returncode

    def finished(self):
        return self._process.wait(PATIENCE)


@pytest.fixture
def started():
    """Starts commands, and ends what is left of them."""
    running = []

    def start(*arguments, of=("-m", "fedhedge")):
        running.append(Process(*of, *arguments))
        return running[-1]

    yield start
    for process in running:
        process.end()


@pytest.fixture
def field(small, tmp_path):
    """Sets up a folder with everything that a federation needs, and returns the server's command."""
    port = free_port()
    make_keys(tmp_path / "keys", SITES)
    shutil.copytree(small.folder, tmp_path / "sites")
    shutil.copy(tmp_path / "sites" / "south.csv", tmp_path / "sites" / "west.csv")

    def site(name, accept, table=None, **changed):
        told = {"table": f"sites/{table or name}.csv", "port": port, "key": f"keys/sites/{name}"}
        return SITE.format(name=name, accept=accept, **told | changed)

    def make(federation, accept=None):
        (tmp_path / "federation.toml").write_text(federation, encoding="utf-8")
        for name in SITES:
            text = site(name, (accept or {}).get(name, "no_privacy = true"))
            (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
        # The stranger's key is known to nobody.
        make_site_keys(tmp_path / "strange", ["north"])
        text = site("north", "no_privacy = true", key="strange/sites/north")
        (tmp_path / "stranger.toml").write_text(text.replace("state-north", "state-stranger"), encoding="utf-8")
        command = ("deploy", "server", tmp_path / "federation.toml", "--keys", tmp_path / "keys", "--port", port)
        return (*command, "--out", tmp_path / "run")

    return make


def test_a_federation_with_crashes_and_harm_is_the_simulation_of_who_was_there(field, started, tmp_path):
    folder, server_command = tmp_path, field(FEDERATION)
    sites = {name: started("deploy", "site", folder / f"{name}.toml") for name in SITES[:-1]}
    sites["west"] = started(Path(__file__).with_name("malicious_site.py"), folder / "west.toml", of=())
    server = started(*server_command)
    server.wait_for("round 1 of 7")
    stranger = started("deploy", "site", folder / "stranger.toml")
    sites["north"].kill()
    server.wait_for("round 2 of 7")
    sites["north"] = started("deploy", "site", folder / "north.toml")
    server.wait_for("round 3 of 7")
    server.kill()
    server = started(*server_command)
    server.wait_for("going on after round")
    server.wait_for("round 4 of 7")
    stranger.wait_for("not let in")
    # A straggler: alive for the server, and no answer in time.
    sites["south"].signal(signal.SIGSTOP)
    server.wait_for("south: no answer within the deadline")
    sites["south"].signal(signal.SIGCONT)
    assert server.finished() == 0, server.read()
    assert [process.end() for process in sites.values()][:3] == [130, 130, 130]

    run = fh.Run.load(folder / "run")
    table = pd.read_parquet(folder / "run" / "attendance.parquet")
    assert len(table) == 7 * 4
    used = table.pivot(index="round", columns="client", values="used").to_numpy()
    assert not used.all()
    assert used.any(axis=1).all()
    # North came back, south came back, and the stranger never counted.
    assert used[-1, :3].all()
    assert used[:, 1].sum() >= 2
    # Nor did the site that does harm, for the reason of each round in which it answered.
    assert not used[:, 3].any()
    west = table[(table["site"] == "west") & table["answered"]]
    assert set(west["round"] % 4) == {0, 1, 2, 3}
    for number, reason in zip(west["round"], west["failure"], strict=True):
        assert HARM[number % 4] in reason
    assert (table.loc[table["failure"] == "no answer within the deadline", "site"] == "south").any()

    data = {"source": "folder", "path": str(folder / "sites"), "label": "kind", "scaling": "none"}
    text = (folder / "federation.toml").read_text(encoding="utf-8")
    content = {key: value for key, value in tomllib.loads(text).items() if key != "federation"}
    content |= {"data": data, "availability": {"name": "Everyone"}}
    simulated = fh.simulate(**Config(content, "same").simulation() | {"law": Trace(used)}, progress=False)
    pairs = zip(jax.tree.leaves(run.params), jax.tree.leaves(simulated.params), strict=True)
    for mine, theirs in pairs:
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-5)
    assert Path(folder / "run" / "report.html").exists()


def test_a_budget_ends_and_masked_sums_of_the_others_go_on(field, started, tmp_path):
    """North's budget is spent before the federation's; with signatures, and its own table for each ledger."""
    accept = {name: BUDGET.replace("EPSILON", "2.5" if name == "north" else "4.0") for name in SITES}
    server_command = field(PRIVATE, accept)
    for name in SITES:
        assert load_site(tmp_path / f"{name}.toml").begin().exists()
    sites = {name: started("deploy", "site", tmp_path / f"{name}.toml") for name in SITES}
    server = started(*server_command)
    assert server.finished() == 0, server.read()
    assert [process.end() for process in sites.values()] == [130] * 4

    table = pd.read_parquet(tmp_path / "run" / "attendance.parquet")
    used = table.pivot(index="round", columns="site", values="used")
    assert used[["east", "south", "west"]].to_numpy().all()
    there = used["north"].tolist()
    assert 0 < sum(there) < 4
    assert there == sorted(there, reverse=True)
    reasons = table.loc[(table["site"] == "north") & ~table["used"], "failure"]
    assert reasons.str.startswith("refused: client 'north': the release would raise the spend").all()
    statements = json.loads((tmp_path / "run" / "privacy.json").read_text(encoding="utf-8"))
    assert {name: told["charges"] for name, told in statements.items()} == {
        name: sum(there) if name == "north" else 4 for name in SITES
    }
    assert statements["north"]["epsilon"] <= 2.5
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(fh.Run.load(tmp_path / "run").params))


def test_the_demonstration(tmp_path, started):
    demo = started("deploy", "demo", "--sites", "3", "--out", tmp_path / "demo")
    demo.wait_for("-- site-2 is killed")
    demo.wait_for("-- site-2 is started again")
    demo.wait_for("report: ")
    assert demo.finished() == 0, demo.read()
    for site in ("site-1", "site-2", "site-3"):
        assert f"Privacy spent by site {site}" in demo.read()
    used = pd.read_parquet(tmp_path / "demo" / "run" / "attendance.parquet").query("used and site == 'site-2'")
    # Killed in a round and back in a later one; the other rounds, before and after, are with it.
    assert 0 < len(used) < ROUNDS
    assert {0, ROUNDS - 1} <= set(used["round"])

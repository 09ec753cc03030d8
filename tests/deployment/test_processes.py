"""Real processes on loopback, TLS and keys on: crashes, stragglers, strangers, and the model of a simulation."""

import os
import select
import signal
import subprocess
import sys
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
from fedhedge.deployment.flower.processes import free_port
from fedhedge.deployment.keys import make_keys, make_site_keys

pytestmark = pytest.mark.deployment

SITES = ("east", "north", "south")
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
sites = ["east", "north", "south"]
features = ["u", "v", "w"]
classes = ["adelie", "chinstrap", "gentoo"]
deadline = DEADLINE
at_least = 2
"""
SITE = """\
site = "{name}"
federation = "federation.toml"
table = "{table}"
state = "state-{name}"
server = "127.0.0.1:{port}"
certificate = "keys/ca.crt"
key = "{key}"
share = ["test"]
accept = {{no_privacy = true}}
"""


class Process:
    """A command of ours, its output, and its end."""

    def __init__(self, *arguments):
        self.out, descriptor = [], subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, "-u", "-m", "fedhedge", *map(str, arguments)],
            stdout=descriptor,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        os.set_blocking(self._process.stdout.fileno(), False)
        self.text = ""

    def read(self):
        self.text += os.read(self._process.stdout.fileno(), 1 << 20).decode() if self._ready() else ""
        return self.text

    def _ready(self):
        return bool(select.select([self._process.stdout], [], [], 0.0)[0])

    def wait_for(self, text):
        until = time.monotonic() + PATIENCE
        while text not in self.read():
            ended = self._process.poll()
            assert ended is None or text in self.read(), f"ended with {ended} before {text!r}:\n{self.text}"
            assert time.monotonic() < until, f"no {text!r} in\n{self.text}"
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

    def start(*arguments):
        running.append(Process(*arguments))
        return running[-1]

    yield start
    for process in running:
        process.end()


@pytest.fixture
def field(small, tmp_path):
    """A folder with everything that a federation needs; the stranger's key is known to nobody."""
    port = free_port()
    make_keys(tmp_path / "keys", SITES)
    make_site_keys(tmp_path / "strange", ["north"])
    (tmp_path / "federation.toml").write_text(FEDERATION.replace("DEADLINE", "45.0"), encoding="utf-8")
    for name in SITES:
        text = SITE.format(name=name, table=small.folder / f"{name}.csv", port=port, key=f"keys/sites/{name}")
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    text = SITE.format(name="north", table=small.folder / "north.csv", port=port, key="strange/sites/north")
    (tmp_path / "stranger.toml").write_text(text.replace("state-north", "state-stranger"), encoding="utf-8")
    return tmp_path, ("deploy", "server", tmp_path / "federation.toml", "--keys", tmp_path / "keys", "--port", port)


def test_a_federation_with_crashes_is_the_simulation_of_who_was_there(small, field, started):
    folder, server_command = field
    server_command = (*server_command, "--out", folder / "run")
    sites = {name: started("deploy", "site", folder / f"{name}.toml") for name in SITES}
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
    assert [process.end() for process in sites.values()] == [130, 130, 130]

    run = fh.Run.load(folder / "run")
    table = pd.read_parquet(folder / "run" / "attendance.parquet")
    assert len(table) == 7 * 3
    used = table.pivot(index="round", columns="client", values="used").to_numpy()
    assert not used.all()
    assert used.any(axis=1).all()
    # North came back, south came back, and the stranger never counted.
    assert used[-1].all()
    assert used[:, 1].sum() >= 2
    assert (table.loc[table["failure"] == "no answer within the deadline", "site"] == "south").any()

    data = {"source": "folder", "path": str(small.folder), "label": "kind", "scaling": "none"}
    text = (folder / "federation.toml").read_text(encoding="utf-8")
    content = {key: value for key, value in tomllib.loads(text).items() if key != "federation"}
    content |= {"data": data, "availability": {"name": "Everyone"}}
    simulated = fh.simulate(**Config(content, "same").simulation() | {"law": Trace(used)}, progress=False)
    pairs = zip(jax.tree.leaves(run.params), jax.tree.leaves(simulated.params), strict=True)
    for mine, theirs in pairs:
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-5)
    assert Path(folder / "run" / "report.html").exists()


def test_the_demonstration(tmp_path, started):
    demo = started("deploy", "demo", "--sites", "3", "--out", tmp_path / "demo")
    demo.wait_for("-- site-2 is killed")
    demo.wait_for("-- site-2 is started again")
    demo.wait_for("report: ")
    assert demo.finished() == 0, demo.read()
    for site in ("site-1", "site-2", "site-3"):
        assert f"Privacy spent by site {site}" in demo.text
    used = pd.read_parquet(tmp_path / "demo" / "run" / "attendance.parquet").query("used and site == 'site-2'")
    assert 0 < len(used) < 9

"""`fedhedge deploy demo`: a server and sites as processes here, and one site that is killed and comes back."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedhedge import files
from fedhedge.checks import InvalidInput
from fedhedge.deployment.extra import needed
from fedhedge.deployment.flower.processes import free_port
from fedhedge.deployment.keys import make_keys
from fedhedge.deployment.site_file import load_site

ROUNDS, EVERY = 10, 5
# After which line of the server a site is killed, and after which it is started again.
KILLED_AFTER, BACK_AFTER = "round 3 of", "round 4 of"
RUNS_OF_A_SITE = 200
FEDERATION = """\
rounds = {rounds}
local_steps = 1
batch_size = "all"
weighting = "rows"
evaluate_every = {every}
evaluate_on = ["test"]

[data]
label = "fault"

[model]
name = "CrammerSinger"

[algorithm]
name = "DpDroAdmm"
radius = 0.01
label_cost = 0.5

[privacy]                   # of each row of each site, over the whole run; the noise follows from it
epsilon = 8.0
delta = 1e-4

[federation]
sites = [{sites}]
classes = ["healthy", "seal leak", "blocked inlet", "bearing friction"]
constant = 0.5
deadline = 90.0
at_least = {count}
patience = 15.0             # the round then goes on with who is there

[federation.features]       # ranges of the sensors, known without looking at the rows
qMean = [34.0, 42.0]
qVar = [5.0, 65.0]
qSkewness = [-2.5, 0.5]
qKurtosis = [1.0, 10.0]
qPeak2Peak = [10.0, 45.0]
qCrest = [1.1, 1.3]
qRMS = [34.0, 42.0]
qMAD = [2.0, 6.0]
qCSRange = [40000.0, 51000.0]
fPeak = [0.0, 120.0]
pLow = [0.0, 400.0]
pMid = [0.0, 700.0]
pHigh = [0.0, 250.0]
"""
SITE = """\
site = "{name}"
federation = "federation.toml"
table = "sites/{name}.csv"
state = "state-{name}"
server = "127.0.0.1:{port}"
certificate = "keys/ca.crt"
key = "keys/sites/{name}"
share = ["test"]            # mean loss and accuracy on the held-out rows leave the site, without noise

[accept]
epsilon = 8.0               # of each row of this site, over all experiments together
delta = 1e-4
methods = ["DpDroAdmm"]
row_bound = 1.0
least_noise = 1.0           # sigma / sensitivity of every release
"""


def main(folder: Path, count: int, say: Callable[[str], None]) -> None:
    """Run the demonstration in a new or empty folder. Raises InvalidInput, MissingExtra, RuntimeError on failure."""
    for module in ("flwr", "opendp.prelude", "cryptography"):
        needed(module)
    if folder.exists() and any(folder.iterdir()):
        raise InvalidInput("--out", str(folder), "a new or empty folder")
    names = [f"site-{number + 1}" for number in range(count)]
    port = free_port()
    say(f"{count} sites with {RUNS_OF_A_SITE} pump runs each, their keys and a certificate authority, in {folder}")
    export = ["data", "export", "pump", str(folder / "sites"), "--clients", str(count), "--label", "fault"]
    subprocess.run(_command(*export, "--set", f"runs={RUNS_OF_A_SITE * count}"), check=True, stdout=subprocess.DEVNULL)
    make_keys(folder / "keys", names)
    listed = ", ".join(f'"{name}"' for name in names)
    files.write_text(
        folder / "federation.toml", FEDERATION.format(rounds=ROUNDS, every=EVERY, sites=listed, count=count)
    )
    for name in names:
        files.write_text(folder / f"{name}.toml", SITE.format(name=name, port=port))
        load_site(folder / f"{name}.toml").begin()
    _play(folder, names, port, say)


def _play(folder: Path, names: list[str], port: int, say: Callable[[str], None]) -> None:
    sites = {name: _start(folder, name) for name in names}
    victim = names[1]
    arguments = ["deploy", "server", str(folder / "federation.toml"), "--keys", str(folder / "keys")]
    server: subprocess.Popen[Any] = subprocess.Popen(
        _command(*arguments, "--out", str(folder / "run"), "--port", str(port)), stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    try:
        for line in server.stdout:
            say(line.rstrip())
            if line.startswith(KILLED_AFTER):
                sites[victim].kill()
                sites[victim].wait()
                say(f"-- {victim} is killed")
            if line.startswith(BACK_AFTER):
                sites[victim] = _start(folder, victim)
                say(f"-- {victim} is started again")
        if server.wait():
            raise RuntimeError(f"the server ended with exit code {server.returncode}")
    finally:
        for process in (server, *sites.values()):
            _stop(process)
    say(f"\nreport: {folder / 'run' / 'report.html'}; who was there: {folder / 'run' / 'attendance.parquet'}")


def _start(folder: Path, name: str) -> subprocess.Popen[Any]:
    with (folder / f"{name}.log").open("ab") as log:
        command = _command("deploy", "site", str(folder / f"{name}.toml"))
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)


def _stop(process: subprocess.Popen[Any]) -> None:
    if process.poll() is None:
        process.terminate()
        until = time.monotonic() + 20.0
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.1)
        process.kill()
        process.wait()


def _command(*arguments: str) -> list[str]:
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    return [sys.executable, "-m", "fedhedge", *arguments]

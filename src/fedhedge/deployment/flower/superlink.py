"""The server's SuperLink: started, told which sites there are, and given a run."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from fedhedge import files
from fedhedge.checks import InvalidInput
from fedhedge.deployment.flower.processes import Daemon, secret_file
from fedhedge.deployment.flower.tasks import Runtime
from fedhedge.deployment.keys import load_certificate

APP = Path(__file__).parent / "app"
NAME = "federation"
START, COMMAND, FREED = 60.0, 60.0, 10.0


class SuperLinkFailed(RuntimeError):
    """Flower's server did not do what it was asked to; the message holds what it said."""


def _check_free(host: str, port: int) -> None:
    """Raises InvalidInput where something listens on the port, and goes on to; one that was killed needs a moment."""
    until = time.monotonic() + FREED
    while True:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
                return
            except OSError as error:
                if time.monotonic() > until:
                    raise InvalidInput("--port", f"{host}:{port}", "one to listen on", str(error.strerror)) from None
        time.sleep(0.2)


class SuperLink:
    """A SuperLink with TLS, to which only sites whose keys are registered can connect.

    folder: of its database and logs. keys: the folder that `fedhedge deploy keys` made. host, port: to listen on; the
    server's certificate has to name what sites call it by.
    """

    def __init__(self, folder: Path, keys: Path, host: str, port: int) -> None:
        load_certificate(keys / "ca.crt")
        self.folder, self.keys, self.port = folder.absolute(), keys.absolute(), port
        secret = secret_file(self.folder)
        local = "127.0.0.1" if host in ("0.0.0.0", "::") else host
        self.address = f"{local}:{port}"
        self.runtime = Runtime(self.address, secret.read_bytes(), self.keys / "ca.crt")
        options = {
            "--host": host,
            "--port": port,
            "--database": self.folder / "state.db",
            "--isolation": "process",
            "--superexec-auth-secret-file": secret,
            "--ssl-ca-certfile": self.keys / "ca.crt",
            "--ssl-certfile": self.keys / "server.pem",
            "--ssl-keyfile": self.keys / "server.key",
        }
        flags = ["--enable-supernode-auth", "--disable-runtime-dependency-installation"]
        arguments = [str(part) for option in options.items() for part in option] + flags
        _check_free(host, port)
        self.daemon = Daemon("superlink", arguments, self.folder / "superlink.log")
        self._wait()
        text = f'[superlink.{NAME}]\naddress = "{self.address}"\nroot-certificates = "{self.keys / "ca.crt"}"\n'
        files.write_text(Path(os.environ["FLWR_HOME"]) / "config.toml", text)
        self._run = self.folder / "run"
        if self._run.exists():
            # After a crash Flower takes a run for alive for up to a minute, in which sites wait for the rest of its
            # messages. One that came to its end cannot be stopped, which does no harm.
            self._flwr("stop", self._run.read_text(encoding="utf-8"), NAME)

    def register(self, site: str) -> None:
        """Let the site of this name in, under its public key in keys/sites; once is enough."""
        public = self.keys / "sites" / f"{site}.pub"
        if not public.is_file():
            raise InvalidInput("keys", str(public), f"the public key of site {site}")
        done = self._flwr("supernode", "register", str(public), NAME, "--name", site)
        if done.returncode and "already in use" not in done.stdout + done.stderr:
            raise SuperLinkFailed(f"site {site} could not be registered: {_said(done)}")

    def submit(self) -> int:
        """Begin a run, and return its number."""
        app = self.folder / "app"
        shutil.copytree(APP, app, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        done = self._flwr("run", str(app), NAME, "--format", "json")
        try:
            found: Any = json.loads(done.stdout[done.stdout.index("{") :])
            number = int(found["run-id"])
        except (ValueError, KeyError):
            raise SuperLinkFailed(f"no run could be begun: {_said(done)}") from None
        files.write_text(self._run, str(number))
        return number

    def stop(self) -> None:
        """End the SuperLink; its database stays."""
        self.daemon.stop()

    def _flwr(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from flwr.cli.app import app; app()", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=COMMAND, check=False)

    def _wait(self) -> None:
        until = time.monotonic() + START
        host, _, port = self.address.rpartition(":")
        while time.monotonic() < until and self.daemon.exit_code is None:
            with socket.socket() as probe:
                probe.settimeout(1.0)
                if probe.connect_ex((host, int(port))) == 0:
                    return
            time.sleep(0.1)
        self.daemon.stop()
        raise SuperLinkFailed(f"the SuperLink did not start ({self.daemon.reason}); its words are in {self.daemon.log}")


def _said(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join((done.stdout + done.stderr).split())[-500:]

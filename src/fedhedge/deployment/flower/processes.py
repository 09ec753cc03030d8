"""Starting and ending Flower's daemons, with everything that phones home turned off."""

from __future__ import annotations

import os
import re
import secrets
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from fedhedge.deployment.flower.daemon import PARENT

# Telemetry, the daily update check, and the installation of what an app asks for.
QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
}
GRACE = 10.0


def be_quiet(home: Path) -> None:
    """Set this process and its children to send nothing of their own; home: of Flower's files."""
    home.mkdir(parents=True, exist_ok=True)
    os.environ.update(QUIET | {"FLWR_HOME": str(home.absolute())})


class Daemon:
    """A running SuperLink or SuperNode; its output goes to a log file. It ends with this process, however that ends."""

    def __init__(self, kind: str, arguments: Sequence[str], log: Path) -> None:
        self.log = log
        command = [sys.executable, "-m", "fedhedge.deployment.flower.daemon", kind, *arguments]
        self._begun = log.stat().st_size if log.exists() else 0
        with log.open("ab") as stream:
            # A session of its own: an interrupt at the terminal is ours to pass on.
            self._process = subprocess.Popen(
                command,
                stdout=stream,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=os.environ | {PARENT: str(os.getpid())},
                start_new_session=True,
            )

    @property
    def exit_code(self) -> int | None:
        """How it ended, None while it runs; reaps it."""
        return self._process.poll()

    @property
    def reason(self) -> str:
        """How it ended in Flower's words, of which the exit code is the only one that can be relied on."""
        with self.log.open("rb") as stream:
            stream.seek(self._begun)
            said = stream.read().decode("utf-8", errors="replace")
        codes = re.findall(r"Exit Code: (\d+)", said)
        return f"Flower's exit code {codes[-1]}" if codes else f"exit code {self.exit_code}"

    def stop(self) -> None:
        """End it, by force after a while."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(GRACE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def secret_file(folder: Path) -> Path:
    """A fresh secret between a daemon and us, readable by its owner only."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "tasks.secret"
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(secrets.token_hex(32).encode())
    return path


def free_port() -> int:
    """A port of the loopback interface that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])

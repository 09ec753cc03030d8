"""A site's SuperNode, kept running: it may be refused for a while after a crash, and ends when its server goes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from fedhedge.deployment.flower.processes import Daemon, free_port, secret_file
from fedhedge.deployment.flower.tasks import Runtime

# A node that could not connect or was not let in; after a crash it is let in once its old heartbeat ran out.
REFUSED = " 305"
PAUSE, LONGEST_PAUSE = 1.0, 30.0


class SuperNode:
    """Starts the node in a thread, and again whenever it ended, until `stop`."""

    def __init__(self, folder: Path, server: str, certificate: Path, key: Path, say: Callable[[str], None]) -> None:
        self.folder, self.say, self.stopping = folder.absolute(), say, threading.Event()
        self._renewing = threading.Event()
        port, secret = free_port(), secret_file(self.folder)
        self.runtime = Runtime(f"127.0.0.1:{port}", secret.read_bytes())
        options = {
            "--superlink": server,
            "--root-certificates": certificate.absolute(),
            "--auth-supernode-private-key": key.absolute(),
            "--isolation": "process",
            "--superexec-auth-secret-file": secret,
            "--host": "127.0.0.1",
            "--port": port,
        }
        self._arguments = [str(part) for option in options.items() for part in option]
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the node."""
        self.stopping.set()
        self._thread.join()

    def renew(self) -> None:
        """End the node and start it afresh."""
        self._renewing.set()

    def _keep(self) -> None:
        pause = PAUSE
        while not self.stopping.is_set():
            with Daemon("supernode", self._arguments, self.folder / "supernode.log") as daemon:
                lived = 0.0
                self._renewing.clear()
                while daemon.exit_code is None and not self._renewing.is_set() and not self.stopping.wait(0.2):
                    lived += 0.2
                reason = daemon.reason
            if self.stopping.is_set():
                return
            why = "not let in, or no server" if reason.endswith(REFUSED) else "ended"
            pause = PAUSE if lived > LONGEST_PAUSE else min(2.0 * pause, LONGEST_PAUSE)
            self.say(f"SuperNode: {why} ({reason}), again in {pause:g} s; its words are in {daemon.log}")
            self.stopping.wait(pause)

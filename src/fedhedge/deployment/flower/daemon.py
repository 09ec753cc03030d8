"""Flower's two daemons, as children of ours: python -m fedhedge.deployment.flower.daemon superlink|supernode ARGUMENTS.

They end with the process that started them. Two waits of the SuperNode are shortened: stock, an idle node asks for
messages every 3 s, and a node that was killed counts as online for up to 60 s, during which it cannot come back under
its key. Flower has no option for either.
"""

from __future__ import annotations

import os
import sys
import time
from types import SimpleNamespace

from fedhedge.deployment.extra import needed

PARENT = "FEDHEDGE_PARENT"
LONGEST_WAIT = 0.3
# The least that a SuperLink accepts; a node is offline after two of them.
HEARTBEAT = 10


def main() -> None:
    """Run the daemon that the first argument names."""
    kind = sys.argv.pop(1)
    needed("flwr.supercore.app_utils").start_parent_process_monitor(int(os.environ[PARENT]))
    if kind == "superlink":
        needed("flwr.superlink.cli").flower_superlink()
    else:
        _hurry()
        needed("flwr.supernode.cli").flower_supernode()


def _hurry() -> None:
    client, connection = needed("flwr.supernode.start_client_internal"), needed("flwr.supernode.fleet_http_connection")
    client.time = SimpleNamespace(sleep=lambda seconds: time.sleep(min(seconds, LONGEST_WAIT)))
    connection.HEARTBEAT_DEFAULT_INTERVAL = HEARTBEAT
    needed("flwr.supercore.heartbeat").HEARTBEAT_DEFAULT_INTERVAL = HEARTBEAT


if __name__ == "__main__":
    main()

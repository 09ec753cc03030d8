"""Flower's two daemons, as children of ours: python -m fedhedge.deployment.flower.daemon superlink|supernode ARGUMENTS.

They end with the process that started them. Two waits of the SuperNode are shortened: stock, an idle node asks for
messages every 3 s, and a node that was killed counts as online for up to 60 s, during which it cannot come back under
its key. Flower has no option for either. And a message whose run ends while it is fetched, as when the server is
killed, is dropped: stock, a part of it stays, and a site waits for the rest for ever.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

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
        hurry()
        drop_torn_messages()
        needed("flwr.supernode.cli").flower_supernode()


def hurry() -> None:
    """Shorten the waits of a SuperNode in this process."""
    client, connection = needed("flwr.supernode.start_client_internal"), needed("flwr.supernode.fleet_http_connection")
    client.time = SimpleNamespace(sleep=lambda seconds: time.sleep(min(seconds, LONGEST_WAIT)))
    connection.HEARTBEAT_DEFAULT_INTERVAL = HEARTBEAT
    needed("flwr.supercore.heartbeat").HEARTBEAT_DEFAULT_INTERVAL = HEARTBEAT


def drop_torn_messages() -> None:
    """Make a SuperNode in this process forget a message of which it cannot fetch the rest.

    Flower tidies up after an `Exception`, and what tells of the end of a run is none.
    """
    client = needed("flwr.supernode.start_client_internal")
    stock = client._pull_and_store_message

    def ordinary(call: Callable[..., Any]) -> Callable[..., Any]:
        def made(*arguments: Any) -> Any:
            try:
                return call(*arguments)
            except client.RunNotRunningException:
                raise RuntimeError("its run has ended") from None

        return made

    def pull(**arguments: Any) -> Any:
        fetching = {name: ordinary(arguments[name]) for name in ("pull_object", "confirm_message_received")}
        return stock(**arguments | fetching)

    client._pull_and_store_message = pull


if __name__ == "__main__":
    main()

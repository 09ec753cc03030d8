"""The coordinator's side: a `Link` over Flower's grid."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fedhedge.deployment.extra import needed
from fedhedge.deployment.flower.messages import TYPE, from_record, to_record
from fedhedge.deployment.link import Failure
from fedhedge.deployment.parcel import Parcel, Rejected

POLL = 0.2


class GridLink:
    """Sites as the SuperNodes whose keys were registered under their names.

    Flower proves by the key who a node is; what a node says of itself plays no part. Messages live as long as the
    round's deadline: one that was not answered by then is dropped wherever it is. sign: puts the server's proof on a
    request, see `proof`.
    """

    def __init__(self, grid: Any, sites: Sequence[str], sign: Callable[[Parcel], Parcel]) -> None:
        self.grid, self.sites, self.sign = grid, frozenset(sites), sign

    def online(self) -> list[str]:
        return list(self._nodes())

    def _nodes(self) -> dict[str, int]:
        found = {}
        for node in sorted(self.grid.get_nodes(), key=lambda node: node.online_until):
            if node.name in self.sites and node.status == "online":
                found[node.name] = node.node_id
        return found

    def ask(self, requests: Mapping[str, Parcel], seconds: float) -> dict[str, Parcel | Failure]:
        message, nodes = needed("flwr.app").Message, self._nodes()
        there = [name for name in requests if name in nodes]
        found: dict[str, Parcel | Failure] = {name: "not online" for name in requests if name not in nodes}
        until = time.monotonic() + seconds
        sent = [
            message(to_record(self.sign(requests[name])), dst_node_id=nodes[name], message_type=TYPE, ttl=seconds)
            for name in there
        ]
        waiting = {name: number for name, number in zip(there, self.grid.push_messages(sent), strict=True) if number}
        while waiting and time.monotonic() < until:
            for reply in self.grid.pull_messages(list(waiting.values())):
                name = next(name for name, number in waiting.items() if number == reply.metadata.reply_to_message_id)
                del waiting[name]
                found[name] = _read(reply)
            if waiting:
                time.sleep(POLL)
        return found


def _read(reply: Any) -> Parcel | Failure:
    if reply.has_error():
        return f"code {reply.error.code}: {reply.error.reason}"
    try:
        return from_record(reply.content)
    except Rejected as error:
        return str(error)

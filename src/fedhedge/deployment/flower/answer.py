"""A site's side: each message that its SuperNode took in is answered by the site in this process."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from fedhedge.deployment.extra import needed
from fedhedge.deployment.flower.messages import from_record, to_record
from fedhedge.deployment.flower.supernode import SuperNode
from fedhedge.deployment.flower.tasks import acquire, working
from fedhedge.deployment.parcel import Parcel, Rejected, refusal
from fedhedge.deployment.site import Site

logger = logging.getLogger(__name__)
POLL = 0.1
# Seconds by which the clocks of server and site may differ.
CLOCKS = 60.0
Check = Callable[[Parcel], Parcel]


def answer(site: Site, node: SuperNode, verify: Check) -> None:
    """Answer messages until the node is stopped; one that is away is waited for. verify: see `proof`."""
    http = needed("httpx")
    acquirer = node.runtime.acquirer()
    while not node.stopping.is_set():
        try:
            token = acquire(acquirer, "CLIENT_APP")
            if token is not None:
                _one(site, node.runtime.worker(token, "flwr-clientapp"), verify)
                continue
        except http.HTTPError as error:
            logger.debug("no word from the SuperNode: %s", error)
        except Exception:
            # The node takes no further message before it has the answer to this one, which it will never get.
            logger.exception("a message could not be answered")
            node.renew()
        node.stopping.wait(POLL)


def _one(site: Site, client: Any, verify: Check) -> None:
    clientapp = needed("flwr.supernode.runtime.run_clientapp")
    try:
        with working(client):
            message, context, _, _ = clientapp.pull_task_input(client)
            clientapp.push_message(client, reply_to(site, message, verify), context)
    finally:
        client.close()


def reply_to(site: Site, message: Any, verify: Check) -> Any:
    """The site's reply as Flower's message."""
    try:
        if message.metadata.created_at + message.metadata.ttl + CLOCKS < time.time():
            # Nobody waits for the answer any more; work on it would be missed by the next one, and cost budget.
            raise Rejected("past its deadline")
        found = site.handle(verify(from_record(message.content)))
    except Rejected as error:
        # Who asks has not shown to be of this federation: not even the fingerprint is told.
        logger.warning("refused a message: %s", error)
        found = refusal(str(error))
    return needed("flwr.app").Message(to_record(found), reply_to=message)

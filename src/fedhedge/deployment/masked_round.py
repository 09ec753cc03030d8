"""The coordinator's side of a masked round: the trips of one session, and who is in the sum at their end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from fedhedge.deployment.exchange import Answers
from fedhedge.deployment.masking_messages import KEYS, Aborted, BadMessage
from fedhedge.deployment.masking_server import MaskingServer
from fedhedge.deployment.masking_terms import REQUESTS, from_arrays
from fedhedge.deployment.parcel import Rejected
from fedhedge.privacy.noise import FloatArray

# Asks clients, by number, a question of this kind, each with a message of its own.
Ask = Callable[[str, Mapping[int, bytes]], Answers]


@dataclass(frozen=True)
class Summed:
    """clients: whose uploads are in the mean, ascending; empty for a round without one. failures: why others' are not.

    mean: float64[length] of their quantised uploads.
    """

    clients: list[int]
    mean: FloatArray
    failures: dict[int, str]


def add_up(server: MaskingServer, numbers: Mapping[str, int], ask: Ask) -> Summed:
    """Go through all trips of a session. numbers: of its clients by name. Nothing that a site sends back can raise."""
    failures: dict[int, str] = {}
    asked = dict.fromkeys(server.session.clients, b"")
    try:
        while asked:
            trip = server.trip
            answers = ask(REQUESTS[trip], {numbers[name]: message for name, message in asked.items()})
            found = dict(answers.failures)
            names = {number: name for name, number in numbers.items()}
            for client, reply in zip(answers.clients, answers.replies, strict=True):
                try:
                    server.receive(names[client], from_arrays(reply.arrays))
                except (BadMessage, Rejected) as error:
                    found[client] = str(error)
            failures |= {client: reason if trip == KEYS else f"{trip}: {reason}" for client, reason in found.items()}
            asked = server.advance()
    except Aborted as error:
        void = dict.fromkeys(numbers.values(), f"no sum: {error}")
        return Summed([], np.zeros(0), void | failures)
    used = sorted(numbers[name] for name in server.total.survivors)
    # A site that is lost after its masked upload came is in the sum all the same.
    return Summed(used, server.total.mean, {client: why for client, why in failures.items() if client not in used})

"""What a round of a method costs, in scalars sent and kept."""

from __future__ import annotations

import math

import jax

from fedhedge.algorithms.base import Algorithm, Tree
from fedhedge.simulation.rounds import Messages


def costs(algorithm: Algorithm, messages: Messages, server: Tree, states: Tree) -> dict[str, int]:
    """Scalars of one client's messages in a round and of the states kept, as in `Run.costs`.

    states: of all clients, arrays [N, ...].
    """
    found = {
        "uplink": algorithm.scalars(messages.up),
        "downlink": scalars(messages.inquiry) + scalars(messages.down),
        "client_state": sum(math.prod(leaf.shape[1:]) for leaf in jax.tree.leaves(states)),
        "server_state": scalars(server),
    }
    if algorithm.weighs:
        found |= {"probe_uplink": scalars(messages.report), "probe_downlink": scalars(messages.inquiry)}
    return found


def scalars(tree: Tree) -> int:
    """Numbers in all arrays of a tree."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(tree))

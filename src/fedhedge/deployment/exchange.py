"""One question to several sites, and the replies that can be used: everything else is named and left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fedhedge.algorithms.base import Tree
from fedhedge.deployment.attendance import SILENT
from fedhedge.deployment.link import Link
from fedhedge.deployment.parcel import DONE, Parcel, Rejected, check_numbers, unpack


@dataclass(frozen=True)
class Answers:
    """clients: whose replies can be used, ascending. replies: theirs. trees: what they sent, [1, ...] each.

    failures: why other clients' cannot.
    """

    clients: list[int]
    replies: list[Parcel]
    trees: list[Tree]
    failures: dict[int, str]

    def stacked(self) -> Tree:
        """The trees with a leading axis of the cohort, [S, ...]."""
        return jax.tree.map(lambda *leaves: jnp.concatenate([jnp.asarray(leaf) for leaf in leaves]), *self.trees)


@dataclass(frozen=True)
class Expected:
    """What a reply has to hold.

    like: the tree of its arrays, [1, ...], None for none. prefix: of their names. check: raises Rejected for facts that
    cannot be.
    """

    fingerprint: str
    number: int
    largest_norm: float
    like: Tree = None
    prefix: str = ""
    check: Callable[[Mapping[str, Any]], object] = dict


def exchange(
    link: Link, sites: Sequence[str], requests: Mapping[int, Parcel], seconds: float, expected: Expected
) -> Answers:
    """Ask clients by their numbers in `sites`; nothing that a site sends back can raise."""
    replies = link.ask({sites[client]: request for client, request in requests.items()}, seconds)
    found = Answers([], [], [], {})
    for client in sorted(requests):
        reply = replies.get(sites[client])
        try:
            tree = _examined(reply, sites[client], expected)
        except Rejected as error:
            found.failures[client] = str(error)
            continue
        assert isinstance(reply, Parcel)
        found.clients.append(client)
        found.replies.append(reply)
        found.trees.append(tree)
    return found


def _examined(reply: Any, site: str, expected: Expected) -> Tree:
    if reply is None:
        raise Rejected(SILENT)
    if not isinstance(reply, Parcel):
        raise Rejected(f"transport: {reply}")
    if reply.kind != DONE:
        raise Rejected(f"refused: {reply.about.get('reason', 'no reason given')}")
    if reply.about.get("fingerprint") != expected.fingerprint:
        raise Rejected("its settings are another experiment's")
    if reply.about.get("site") != site or reply.about.get("round") != expected.number:
        raise Rejected("the reply is to another question")
    expected.check(reply.about)
    if expected.like is None:
        return None
    tree = unpack(expected.like, reply.arrays, expected.prefix)
    check_numbers(tree, expected.largest_norm)
    return tree


def number(value: Any, what: str, *, low: float = -np.inf) -> float:
    """A finite number of at least `low`; raises Rejected."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value) or value < low:
        raise Rejected(f"{what} is {value!r}, not a number")
    return float(value)


def table(value: Any, what: str) -> Mapping[str, Any]:
    """A table of names; raises Rejected."""
    if not isinstance(value, Mapping):
        raise Rejected(f"{what} is {value!r}, not a table")
    return value


def check_seen(names: Sequence[str], about: Mapping[str, Any]) -> None:
    """Raises Rejected unless the facts of an upload hold the sums of what local steps observe, under these names."""
    seen = table(about.get("seen"), "seen")
    if set(seen) != set(names):
        raise Rejected(f"seen holds {sorted(map(str, seen))}, not {sorted(names)}")
    for name in names:
        number(seen[name], name)

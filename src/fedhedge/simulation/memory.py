"""How much memory there is, and whose memory an array has."""

from __future__ import annotations

import os

import jax

from fedhedge.algorithms.base import Tree


def owned(tree: Tree, *others: Tree) -> Tree:
    """The same arrays, each with memory of its own, apart from that of `others`: rounds use up the state they get."""
    taken = {leaf.unsafe_buffer_pointer() for leaf in jax.tree.leaves(others)}

    def own(leaf: jax.Array) -> jax.Array:
        found = leaf.copy() if leaf.unsafe_buffer_pointer() in taken else leaf
        taken.add(found.unsafe_buffer_pointer())
        return found

    return jax.tree.map(own, tree)


def of_this_machine() -> float:
    """Bytes of memory that this machine has; infinite where the system does not say."""
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", ()):
        return float("inf")
    return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))

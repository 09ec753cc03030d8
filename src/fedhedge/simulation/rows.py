"""Rows of clients on the device: one copy for all runs on the same clients."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

if TYPE_CHECKING:
    from fedhedge.data import Clients

Rows = tuple[jax.Array, jax.Array]
_HELD: weakref.WeakKeyDictionary[Clients, dict[tuple[str, str], Rows]] = weakref.WeakKeyDictionary()


def on_device(clients: Clients, split: str, precision: str) -> Rows:
    """Features and labels of a split, client after client; they go when the clients go."""
    held = _HELD.setdefault(clients, {})
    if (split, precision) not in held:
        features, labels = clients.rows(split)
        held[split, precision] = (jnp.asarray(features, precision), jnp.asarray(labels))
    return held[split, precision]

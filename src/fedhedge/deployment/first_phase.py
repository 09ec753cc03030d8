"""The first phase of a round, for methods that decide who trains: clients report, then the server weighs."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from fedhedge.algorithms.base import Algorithm, Cohort, Tree
from fedhedge.deployment.exchange import Answers

NOT_FINITE = "what follows from the reports is not finite"


def weigh(
    algorithm: Algorithm, server: Tree, clients: list[int], mass: np.ndarray, key: jax.Array, ask: Callable[[], Answers]
) -> tuple[Tree, dict[int, float], dict[int, str]]:
    """(new server state, positive weights of the clients that are to train, why reports were left out).

    clients: who got through. mass: weights of all clients [N], of any sum. ask: the reports of all of `clients`, called
    only for a method that probes.
    """
    failures: dict[int, str] = {}
    seen: Tree = ()
    here = clients
    if algorithm.probes:
        answers = ask()
        here, failures = answers.clients, answers.failures
        seen = answers.stacked() if here else ()
    if not here:
        return server, {}, failures
    fresh, found = algorithm.weigh(server, seen, cohort(here, mass[here], mass), key)
    weights = np.asarray(found, np.float64)
    changed = [new for new, old in zip(jax.tree.leaves(fresh), jax.tree.leaves(server), strict=True) if new is not old]
    if not all(np.isfinite(np.asarray(leaf)).all() for leaf in [weights, *changed]):
        return server, {}, failures | dict.fromkeys(here, NOT_FINITE)
    return fresh, {client: float(w) for client, w in zip(here, weights, strict=True) if w > 0.0}, failures


def cohort(clients: list[int], weights: np.ndarray, mass: np.ndarray) -> Cohort:
    """The cohort of these clients, with weights [S] of any sum."""
    shares = (mass / mass.sum())[clients]
    return Cohort(jnp.asarray(clients, jnp.int32), jnp.asarray(weights / weights.sum()), jnp.asarray(shares))

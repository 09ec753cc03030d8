"""Which methods can do with a masked sum: those whose server takes nothing from uploads but their uniform mean."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fedhedge.algorithms.base import Algorithm, Cohort, Tree
from fedhedge.checks import InvalidInput
from fedhedge.deployment.programme import Programme
from fedhedge.simulation.arithmetic import arithmetic

# In doubles, whatever the method computes in, a server that takes the mean alone ends up the same to rounding.
CLOSE = 1e-9
ALLOWED = "a method whose server needs nothing but the mean of the uploads, such as FedAvg, FedeRage or DpDroAdmm"


def check_mean(programme: Programme) -> None:
    """Raises InvalidInput for a method to which the mean of a round's uploads is not enough."""
    method, options = programme.algorithm, programme.options
    if options.weighting != "uniform":
        hint = "a mean by numbers of rows is not uniform"
        raise InvalidInput("weighting", options.weighting, '"uniform" with masked sums', hint)
    if method.weighs:
        raise InvalidInput("algorithm", method.name, ALLOWED, "this one asks sites before they train")
    if not all(np.issubdtype(leaf.dtype, np.floating) for leaf in jax.tree.leaves(programme.likes.up)):
        raise InvalidInput("algorithm", method.name, ALLOWED, "its uploads, with these settings, hold whole numbers")
    if not _takes_the_mean_alone(programme):
        hint = "its server keeps single uploads, or weighs them by who sent them"
        raise InvalidInput("algorithm", method.name, ALLOWED, hint)


def _takes_the_mean_alone(programme: Programme) -> bool:
    """Whether made-up uploads, and their mean in place of each of them, lead the server to the same states.

    Over rounds in which each client comes together with the next ones, and some more often than others: a server that
    tells clients apart by number, or by how often they came, shows it.
    """
    clients, rng = programme.clients, np.random.default_rng(0)
    rounds = [[0, 1], *([at, at + 1, at + 2] for at in range(clients - 2)), list(range(min(clients, 3)))]
    with arithmetic("float64"):
        true = mean = jax.tree.map(_double, programme.likes.server)
        leaves, structure = jax.tree.flatten(programme.likes.up)
        for came in rounds:
            count = len(came)
            of = Cohort(jnp.asarray(came, jnp.int32), jnp.full(count, 1.0 / count), jnp.full(count, 1.0 / clients))
            up = [jnp.asarray(rng.uniform(0.5, 1.5, (count, *leaf.shape[1:]))) for leaf in leaves]
            same = [jnp.broadcast_to(leaf.mean(axis=0), leaf.shape) for leaf in up]
            true = _aggregate(programme.algorithm, true, jax.tree.unflatten(structure, up), of)
            mean = _aggregate(programme.algorithm, mean, jax.tree.unflatten(structure, same), of)
            if not _same(true, mean):
                return False
    return True


@jax.jit
def _aggregate(method: Algorithm, server: Tree, up: Tree, of: Cohort) -> Tree:
    return method.aggregate(server, up, of)


def _double(leaf: Any) -> jax.Array:
    value = np.asarray(leaf)
    return jnp.asarray(value, np.float64 if np.issubdtype(value.dtype, np.floating) else value.dtype)


def _same(left: Tree, right: Tree) -> bool:
    pairs = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    return all(np.allclose(a, b, rtol=CLOSE, atol=CLOSE) for a, b in pairs)

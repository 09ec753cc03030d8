"""Consensus on one matrix by ADMM, with any set of clients in a round: what the methods of the DRO papers share.

In the papers' notation, with scaled duals: M_g moves near Mbar - mu_g, then Mbar = sum_g alpha_g (M_g + mu_g) and
mu_g <- mu_g + M_g - Mbar. The bookkeeping here is the same for everyone at work, and needs the least from those who
are away: with z_g = M_g + mu_g a client's dual is mu_g = z_g - Mbar at the start of its turn, the turn adds M_g - Mbar
to z_g and uploads just that, and the server adds sum_g alpha_g (M_g - Mbar) over the clients that came to Mbar. So

    Mbar = sum_g alpha_g z_g  and  sum_g alpha_g mu_g = 0  over *all* clients, whoever came,

the server stores no client's state, and a sum of uploads is all it needs. alpha_g are `Cohort.mass`. In each
coordinate this is Douglas-Rachford splitting, z <- z + prox(2 P z - z) - P z with P the alpha-weighted mean; a random
set of coordinates per round converges to the same fixed points, whatever the law of who comes, as long as everybody
does (Iutzeler et al. 2013, arXiv 1303.2837; Bianchi, Hachem and Iutzeler 2016, arXiv 1407.0898).

A client that has not come yet stands in the mean with the initial model, z_g = M_0; one that never comes counts as
the objective rho/2 ||M - M_0||_F^2.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import Batches, Cohort, Start, weighted_mean


def advance(center: jax.Array, up: jax.Array, cohort: Cohort) -> jax.Array:
    """Mbar + sum_g alpha_g (M_g - Mbar) over the clients at work; up [S, K, P] holds M_g - Mbar."""
    moved: jax.Array = center + weighted_mean(cohort.mass, up)
    return moved


def initial_matrix(start: Start) -> jax.Array:
    """The initial model, which has to be one matrix [K, P]; raises InvalidInput for another model."""
    leaves = jax.tree.leaves(start.params)
    if len(leaves) != 1 or jnp.ndim(leaves[0]) != 2:
        received = [jnp.shape(leaf) for leaf in leaves]
        raise checks.InvalidInput("model", received, "CrammerSinger(), whose parameters are one matrix [K, P]")
    return jnp.asarray(leaves[0])


def one_step(batches: Batches) -> None:
    """Raises InvalidInput unless a turn is one step over the client's rows."""
    steps = batches.index.shape[1]
    if steps != 1:
        raise checks.InvalidInput("local_steps", steps, "1: a turn is one step over all rows of the client")


def check_radius(value: Any) -> float | tuple[float, ...]:
    """A Wasserstein radius r >= 0, or one for each client; raises InvalidInput."""
    if isinstance(value, list | tuple):
        return tuple(checks.number(f"radius[{client}]", radius, low=0.0) for client, radius in enumerate(value))
    return checks.number("radius", value, low=0.0)


def check_label_cost(value: Any) -> float:
    """A label cost kappa >= 0, infinite where labels are trusted; raises InvalidInput."""
    return float("inf") if value == float("inf") else checks.number("label_cost", value, low=0.0)


def radius_of_each(radius: Any, clients: int) -> jax.Array:
    """Radii [N] from one number or N numbers; raises InvalidInput when there is another number of them."""
    if isinstance(radius, tuple) and len(radius) != clients:
        raise checks.InvalidInput("radius", radius, f"one number, or {clients} numbers, one for each client")
    return jnp.broadcast_to(jnp.asarray(radius, float), (clients,))

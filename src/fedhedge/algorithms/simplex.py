"""Weights on the simplex: projection, ascent along reported losses, and the weighted quantile."""

from __future__ import annotations

import jax
import jax.numpy as jnp

# Cumulative weights in single precision fall short of a level that they reach exactly.
ROUNDING = 1e-6


def project_simplex(v: jax.Array) -> jax.Array:
    """The nearest point to v [N] with entries >= 0 that sum to one: max(v - tau, 0), with tau found without sorting.

    tau = (sum of the active v - 1) / (number of active v), where an entry at or below tau stops being active. A pass
    is linear in N, and a few passes suffice. NaN where the largest entry is not finite: no such point exists.
    Source: Michelot 1986; Condat 2016 (Math. Programming 158), section 3.
    """
    # Relative to the largest entry, which always stays active: then the sums lose nothing to a common offset. It takes
    # 1 at most, so that tau >= -1 and what lies below is 0 however far: sums cannot overflow.
    top = jnp.max(v)
    v = jnp.maximum(v - top, -1.0)

    def threshold(active: jax.Array) -> jax.Array:
        return (jnp.sum(jnp.where(active, v, 0.0)) - 1.0) / jnp.sum(active)

    def going(carry: tuple[jax.Array, jax.Array]) -> jax.Array:
        active, smaller = carry
        return jnp.any(active & ~smaller)

    def shrink(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        _, active = carry
        return active, active & (v > threshold(active))

    everything = jnp.ones(v.shape, bool)
    active, _ = jax.lax.while_loop(going, shrink, (everything, v > threshold(everything)))
    nearest = jnp.where(active, jnp.maximum(v - threshold(active), 0.0), 0.0)
    return jnp.where(jnp.isfinite(top), nearest, jnp.nan)


def ascend(weights: jax.Array, clients: jax.Array, here: jax.Array, gains: jax.Array, step: float) -> jax.Array:
    """Proj(lambda + step (N/|S|) v) for lambda [N], where v holds the gains [S] of the clients here and 0 elsewhere.

    clients: client numbers [S]; here: bool[S]. The factor N/|S| makes v unbiased when all come equally often.
    """
    scale = len(weights) / jnp.maximum(jnp.sum(here), 1)
    slots = jnp.where(here, clients, len(weights))
    return project_simplex(weights.at[slots].add(step * scale * gains, mode="drop"))


def weighted_quantile(values: jax.Array, weights: jax.Array, level: jax.Array | float) -> jax.Array:
    """The smallest value q with sum of w_i over {v_i <= q} >= level sum of w_i; entries of weight 0 do not count.

    values, weights: [S]. level: in [0, 1]; 0 is the smallest value.
    """
    order = jnp.argsort(values)
    share = jnp.cumsum(weights[order]) / jnp.sum(weights)
    reached = (share >= level - ROUNDING) & (weights[order] > 0)
    return values[order][jnp.argmax(reached)]

"""Mini-batches by row number, drawn inside the compiled programme from the stream (client, round)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Pool(NamedTuple):
    """Training rows of all clients, client after client: features [n, ...], labels [n], offsets [N], counts [N]."""

    features: jax.Array
    labels: jax.Array
    offsets: jax.Array
    counts: jax.Array


def draw(
    key: jax.Array, pool: Pool, clients: jax.Array, rounds: jax.Array, steps: int, size: int | None, widest: int
) -> tuple[jax.Array, jax.Array]:
    """Row numbers [L, steps, size] of the mini-batches of L pairs of client and round, and which of them exist.

    Each mini-batch is a uniform subset of min(size, count) rows, independent of the others; size None takes all
    the client's rows at every step (`widest` is the largest count, the width of the result). Client and round
    alone decide, so the draw is the same in any cohort and any chunk of rounds.
    """
    offset, count = (leaf[clients][:, None, None] for leaf in (pool.offsets, pool.counts))
    if size is None:
        rows = jnp.arange(widest, dtype=jnp.int32)
        shape = (len(clients), steps, widest)
        return jnp.broadcast_to(offset + jnp.minimum(rows, count - 1), shape), jnp.broadcast_to(rows < count, shape)

    def stream(client: jax.Array, number: jax.Array) -> jax.Array:
        # 32 bits also where integers have 64: by default these would be as wide, and no row number below.
        return jax.random.bits(jax.random.fold_in(jax.random.fold_in(key, client), number), (steps, size), jnp.uint32)

    position = jnp.arange(size, dtype=jnp.int32)
    taken = jnp.minimum(size, count)
    # Floyd's method: position j draws from 0..n-taken+j, and takes that end itself when the row was drawn before.
    ends = jnp.broadcast_to(jnp.maximum(count - taken + position, 0), (len(clients), steps, size))
    wanted = _below(jax.vmap(stream)(clients, rounds), ends + 1)
    rows = _floyd(*(leaf.reshape(-1, size).T for leaf in (wanted, ends))).T.reshape(ends.shape)
    present = jnp.broadcast_to(position < taken, ends.shape)
    return offset + jnp.where(present, rows, 0), present


def _floyd(wanted: jax.Array, ends: jax.Array) -> jax.Array:
    """Distinct rows [size, B] of B mini-batches side by side; the long axis comes last, so that it is vectorised."""

    def choose(chosen: jax.Array, item: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        position, want, end = item
        repeated = jnp.any(chosen == want, axis=0)
        return chosen.at[position].set(jnp.where(repeated, end, want)), None

    start = jnp.full(wanted.shape, -1, jnp.int32)
    return jax.lax.scan(choose, start, (jnp.arange(len(wanted)), wanted, ends))[0]


def _below(bits: jax.Array, bound: jax.Array) -> jax.Array:
    """Uniform integers in [0, bound) from 32 random bits each: the upper half of the 64-bit product bits * bound.

    A value's probability is off by at most 2^-32. In 16-bit halves, since 64-bit integers are off by default.
    """
    bound = bound.astype(jnp.uint32)
    high, low = bits >> 16, bits & 0xFFFF
    bound_high, bound_low = bound >> 16, bound & 0xFFFF
    middle = high * bound_low + (low * bound_low >> 16)
    carry = (low * bound_high + (middle & 0xFFFF)) >> 16
    return (high * bound_high + (middle >> 16) + carry).astype(jnp.int32)

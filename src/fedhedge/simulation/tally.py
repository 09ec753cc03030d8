"""What rounds count between two evaluations, and the first failure among them."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


class Tally(NamedTuple):
    """What was seen since the last evaluation, and the first round with something that was not finite.

    skipped, refused: uploads and reports that were left out. bad_client: the first client with a non-finite upload
    (or report, where bad_report says so) in `bad_round`; both are -1 when there is none.
    """

    sums: dict[str, jax.Array]
    steps: jax.Array
    skipped: jax.Array
    refused: jax.Array
    bad_round: jax.Array
    bad_client: jax.Array
    bad_report: jax.Array


def empty_tally(names: tuple[str, ...]) -> Tally:
    """A tally of nothing."""
    return _empty(names, jnp.result_type(float))


@functools.cache
def _empty(names: tuple[str, ...], kind: Any) -> Tally:
    sum_, zero, none = jnp.zeros((), kind), jnp.asarray(0, jnp.int32), jnp.asarray(-1, jnp.int32)
    return Tally(dict.fromkeys(names, sum_), sum_, zero, zero, none, none, jnp.asarray(False))


def failure(
    tally: Tally, failed: jax.Array, number: jax.Array, clients: jax.Array, bad: jax.Array, *, report: bool
) -> Tally:
    """The tally with round `number` and the first of the `bad` slots [S], if it failed and no round before did."""
    first = failed & (tally.bad_round < 0)
    culprit = jnp.where(jnp.any(bad), clients[jnp.argmax(bad)], -1)
    return tally._replace(
        bad_round=jnp.where(first, number, tally.bad_round),
        bad_client=jnp.where(first, culprit, tally.bad_client),
        bad_report=jnp.where(first, report, tally.bad_report),
    )

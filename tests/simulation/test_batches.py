"""Mini-batches are uniform subsets, and the same wherever they are drawn."""

from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import fedhedge as fh
from fedhedge.simulation.batches import Pool, _below, draw

COUNTS = (5, 2, 40)
POOL = Pool(
    jnp.zeros((sum(COUNTS), 1)),
    jnp.zeros(sum(COUNTS)),
    jnp.asarray([0, 5, 7], jnp.int32),
    jnp.asarray(COUNTS, jnp.int32),
)
KEY = jax.random.key(3)


def rows(client, numbers, steps=4, size=3, widest=40):
    numbers = jnp.atleast_1d(jnp.asarray(numbers))
    index, present = draw(KEY, POOL, jnp.full(numbers.shape, client), numbers, steps, size, widest)
    return np.asarray(index), np.asarray(present)


@pytest.mark.parametrize("client", range(3))
def test_distinct_rows_of_the_client_itself(client):
    offset, count = int(POOL.offsets[client]), COUNTS[client]
    index, present = rows(client, np.arange(200))
    for batch, there in zip(index.reshape(-1, 3), present.reshape(-1, 3), strict=True):
        assert there.sum() == min(3, count)
        held = batch[there]
        assert len(set(held.tolist())) == len(held)
        assert offset <= batch.min()
        assert batch.max() < offset + count


def test_every_subset_is_equally_likely():
    index, _ = rows(0, np.arange(20_000), steps=1, size=2)
    drawn = np.sort(index[:, 0, :], axis=1)
    subsets = list(combinations(range(5), 2))
    seen = np.array([np.sum((drawn == subset).all(axis=1)) for subset in subsets])
    assert chisquare(seen).pvalue > 1e-3


def test_steps_of_a_round_are_independent():
    """Joint table of the single rows drawn at two steps: uniform over all 25 pairs."""
    index, _ = rows(0, np.arange(20_000), steps=2, size=1)
    pair = index[:, 0, 0] * 5 + index[:, 1, 0]
    assert chisquare(np.bincount(pair, minlength=25)).pvalue > 1e-3


def test_client_and_round_alone_decide():
    first, _ = rows(2, 7)
    longer, _ = rows(2, 7, steps=9)
    np.testing.assert_array_equal(first, longer[:, :4])
    together, _ = draw(KEY, POOL, jnp.asarray([0, 2, 2]), jnp.asarray([7, 7, 8]), 4, 3, 40)
    np.testing.assert_array_equal(first[0], together[1])
    assert not np.array_equal(first[0], together[2])


def test_all_rows_when_no_size_is_given():
    index, present = rows(1, 0, steps=2, size=None)
    assert index.shape == (1, 2, 40)
    np.testing.assert_array_equal(present[0].sum(axis=1), 2)
    np.testing.assert_array_equal(index[0, 0][present[0, 0]], [5, 6])
    assert index.max() < 7


@settings(deadline=None)
@given(bits=st.integers(0, 2**32 - 1), bound=st.integers(1, 2**31 - 1))
def test_bounded_integers_are_the_upper_half_of_the_product(bits, bound):
    found = _below(jnp.asarray(bits, jnp.uint32), jnp.asarray(bound, jnp.int32))
    assert int(found) == bits * bound >> 32


@pytest.mark.parametrize("client", range(3))
def test_double_precision_draws_the_same_rows(client):
    """Methods that compute in float64 draw where integers have 64 bits."""
    expected = rows(client, np.arange(50))
    with jax.enable_x64(True):
        found = rows(client, np.arange(50))
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_private_method_learns_from_mini_batches():
    """With batches as large as the clients it sees the rows that it sees without."""
    clients = fh.data.load("iris").partition(fh.data.Iid(clients=3), seed=0)
    size = int(clients.counts("train").max())
    of_all, of_batches = (
        fh.simulate(
            fh.algorithms.DpSgd(noise=0.0), fh.models.CrammerSinger(), clients, fh.availability.Everyone(),
            rounds=5, local_steps=1, batch_size=batch, progress=False,
        )
        for batch in (None, size)
    )  # fmt: skip
    np.testing.assert_allclose(of_batches.params, of_all.params, atol=1e-12)

"""FedDisco's weights from sizes and label counts."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import entropy

import fedhedge as fh
from federations import begin, digits
from fedhedge.algorithms.base import Batches, Cohort, Layout

EVERYONE = fh.availability.Everyone()


def weights_of(a, b):
    """Reports and weights of all clients, whose rows are laid out as the driver does: padded to the widest."""
    x, y = digits().rows("train")
    counts, first = digits().counts("train"), digits().offsets("train")[:-1]
    place = np.arange(counts.max())
    index = first[:, None, None] + np.minimum(place, counts[:, None, None] - 1)
    there = jnp.asarray(place < counts[:, None, None])
    layout = Layout(padded=True)
    batches = Batches(jnp.asarray(x), jnp.asarray(y), jnp.asarray(index), there, jnp.ones(30, int), True, layout)
    method = fh.algorithms.FedDisco(a=a, b=b)
    cohort = Cohort(jnp.arange(30), jnp.full(30, 1 / 30), jnp.full(30, 1 / 30))
    return np.asarray(method.weigh((), method.probe(None, (), (), batches, None), cohort, None)[1])


def expected(a, b):
    _, y = digits().rows("train")
    ends = np.cumsum(digits().counts("train"))[:-1]
    labels = np.array([np.bincount(part, minlength=10) for part in np.split(y, ends)])
    sizes = labels.sum(axis=1) / labels.sum()
    divergence = [entropy(row / row.sum(), np.full(10, 0.1)) for row in labels]
    weights = np.maximum(sizes - a * np.array(divergence) + b, 0)
    return weights / weights.sum() if weights.sum() else sizes


@pytest.mark.parametrize(("a", "b"), [(0.1, 0.2), (0.5, 1.0), (0.5, 0.1)])
def test_weights(a, b):
    """The last pair is the paper's: here each client holds so few labels that no weight is positive."""
    np.testing.assert_allclose(weights_of(a, b), expected(a, b), atol=2e-6)


def test_clients_without_a_positive_weight_do_not_train():
    seen = fh.algorithms.feddisco.Report(np.array([10.0, 10.0, 0.0]), np.array([0.0, 3.0, 0.0]))
    cohort = Cohort(np.array([0, 1, 2]), np.array([0.5, 0.5, 0.0]), np.zeros(3))
    _, weights = fh.algorithms.FedDisco().weigh((), seen, cohort, None)
    np.testing.assert_array_equal(weights, [1.0, 0.0, 0.0])
    run = begin(fh.algorithms.FedDisco(), fh.models.Linear(), digits(), EVERYONE)
    assert run.costs["probe_uplink"] == 2
    assert run.costs["probe_downlink"] == 0

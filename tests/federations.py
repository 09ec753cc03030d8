"""Small federations whose answers are known."""

import functools

import jax.numpy as jnp
import numpy as np

import fedhedge as fh
from fedhedge.simulation.driver import Simulation
from fedhedge.simulation.options import Options

RARE = {27: (8,), 28: (8, 9), 29: (9,)}


@functools.cache
def digits(clients: int = 30) -> fh.data.Clients:
    """scikit-learn's digits, at most two classes a client; of 30 clients only the last three hold 8 and 9."""
    rule = fh.data.ByLabel(clients=clients, classes_per_client=2, reserved=RARE if clients == 30 else None)
    return fh.data.load("digits").partition(rule, seed=0)


@functools.cache
def quadratic() -> tuple[fh.data.Clients, fh.models.Functional]:
    """Two clients with f_i = a_i/2 (w - b_i)^2, a = (1, 9), b = (0, 1): optimum of the mean 0.9."""
    clients = fh.data.Clients.from_splits((np.array([[1.0, 0.0], [9.0, 1.0]]), np.zeros(2), [0, 1]))
    model = fh.models.Functional(
        init=lambda key: jnp.zeros(()), loss=lambda w, x, y: x[:, 0] / 2 * (w - x[:, 1]) ** 2, convex=True
    )
    return clients, model


def begin(algorithm, model, clients, law, **options) -> Simulation:
    """A simulation whose state a test can look into."""
    return Simulation(algorithm, model, clients, law, Options(**options))


def same(left, right) -> bool:
    """Whether two trees of arrays are equal bit for bit."""
    import jax

    pairs = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)

"""Short runs of least squares over five clients, for comparisons of whole trajectories and for costs."""

import jax.numpy as jnp

import fedhedge as fh
from federations import begin
from fedhedge.experiments.absolute_loss import problem

# Local steps of the five clients.
UNEQUAL_STEPS = [1, 2, 3, 4, 1]
MODEL = fh.models.Functional(
    init=lambda key: jnp.zeros(2), loss=lambda w, x, y: (x[:, :2] @ w - x[:, 2]) ** 2, convex=True
)


def prepared(algorithm, law, **options):
    """A run of 30 rounds before its first one."""
    settings = {"rounds": 30, "evaluate_every": 30, "evaluate_on": (), "batch_size": None, "local_steps": 4} | options
    return begin(algorithm, MODEL, problem()[0], law, **settings)


def trained(algorithm, law, **options):
    """The same after its last one."""
    simulation = prepared(algorithm, law, **options)
    simulation.run(None, False, False)
    return simulation


def costs(algorithm, **options):
    """Scalars sent and kept; the model has 2."""
    return prepared(algorithm, fh.availability.Everyone(), **options).costs

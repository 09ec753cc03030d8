"""Where methods settle on the two quadratic clients of `federations.quadratic`, in closed form and by running them."""

import numpy as np

import fedhedge as fh
from federations import quadratic

A, B, STEP = np.array([1.0, 9.0]), np.array([0.0, 1.0]), 0.05
EVERYONE = fh.availability.Everyone()
SKEWED = fh.availability.FixedSize((4.0, 1.0), size=1)


def contraction(steps):
    """r_i = 1 - (1 - eta a_i)^K_i: K_i local steps from x end at x - r_i (x - b_i)."""
    return 1 - (1 - STEP * A) ** np.asarray(steps)


def balance(pulls):
    """The x with sum_i pull_i (x - b_i) = 0."""
    return np.sum(pulls * B) / np.sum(pulls)


def limit(algorithm, law=EVERYONE, steps=10, rounds=2000):
    """The model after many rounds with full gradients."""
    clients, model = quadratic()
    run = fh.simulate(
        algorithm, model, clients, law, rounds=rounds, local_steps=steps, batch_size=None, evaluate_every=1000,
        progress=False,
    )  # fmt: skip
    return float(run.params)

"""Scalar clients f_i(w) = a_i/2 (w - b_i)^2, and plain NumPy versions of what methods do on them."""

import functools

import cvxpy as cp
import jax.numpy as jnp
import numpy as np

import fedhedge as fh
from federations import begin

A = np.array([1.0, 4.0, 2.0, 8.0, 3.0])
B = np.array([0.0, 1.0, -1.0, 0.5, 2.0])
STEP, STEPS, COUNT = 0.02, 4, 5


@functools.cache
def parabolas(count: int = COUNT) -> tuple[fh.data.Clients, fh.models.Functional]:
    """The first `count` clients, one row each, starting at w = 0."""
    rows = np.stack([A, B], axis=1)[:count]
    clients = fh.data.Clients.from_splits((rows, np.zeros(count), np.arange(count)))
    model = fh.models.Functional(
        init=lambda key: jnp.zeros(()), loss=lambda w, x, y: x[:, 0] / 2 * (w - x[:, 1]) ** 2, convex=True
    )
    return clients, model


def finished(algorithm, law, rounds=100, count=COUNT, steps=STEPS, **options):
    """A simulation on the first `count` clients that has run."""
    clients, model = parabolas(count)
    settings = {"rounds": rounds, "local_steps": steps, "batch_size": None, "evaluate_every": rounds} | options
    simulation = begin(algorithm, model, clients, law, evaluate_on=(), **settings)
    simulation.run(None, False, False)
    return simulation


def losses(x, count=COUNT):
    return A[:count] / 2 * (x - B[:count]) ** 2


def moved(x, who, step=STEP, steps=STEPS):
    """Ends of the local steps of clients `who` from x."""
    return B[who] + (1 - step * A[who]) ** steps * (x - B[who])


def replay(present, weigh, x=0.0):
    """Models after each round, and who trained, when `weigh(losses, clients)` gives weights of those who came."""
    models, trained = [], np.zeros_like(present)
    for t, row in enumerate(present):
        who = np.flatnonzero(row)
        weights = np.asarray(weigh(losses(x)[who], who), float)
        if weights.sum() > 0:
            x = weights @ moved(x, who) / weights.sum()
        trained[t, who[weights > 0]] = True
        models.append(x)
    return np.array(models), trained


def mean_balance(law, weigh):
    """Where the average of iterates settles: sum of q_S w_iS r_i (x - b_i) = 0 over subsets, {subset: q_S} = law."""
    pull = np.zeros(COUNT)
    for subset, probability in law.items():
        if subset:
            who = np.array(subset)
            pull[who] += probability * np.asarray(weigh(who))
    pull *= 1 - (1 - STEP * A) ** STEPS
    return pull @ B / pull.sum()


def worst_mixture(count, penalty=0.0):
    """(x, lambda) of min over x, max over lambda of sum lambda_i f_i(x) - penalty N/2 |lambda - 1/N|^2, by cvxpy.

    With a penalty the inner maximum is min over nu of nu + sum ((f_i - nu + penalty)_+^2 - penalty^2)/(2 penalty N).
    """
    x, top = cp.Variable(), cp.Variable()
    f = cp.multiply(A[:count] / 2, cp.square(x - B[:count]))
    if penalty == 0.0:
        task = cp.Problem(cp.Minimize(top), [f <= top])
        task.solve(solver="CLARABEL")
        return float(x.value), task.constraints[0].dual_value
    over = cp.sum(cp.square(cp.pos(f - top + penalty))) / (2 * penalty * count)
    cp.Problem(cp.Minimize(top + over)).solve(solver="CLARABEL")
    return float(x.value), np.maximum(f.value - top.value + penalty, 0) / (penalty * count)


def nearest_on_simplex(v):
    """Projection by trying every set of positive entries."""
    best, distance = None, np.inf
    for mask in range(1, 2 ** len(v)):
        support = (mask >> np.arange(len(v))) & 1 == 1
        w = np.where(support, v - (v[support].sum() - 1) / support.sum(), 0.0)
        if (w >= -1e-12).all() and np.sum((w - v) ** 2) < distance:
            best, distance = w, np.sum((w - v) ** 2)
    return best

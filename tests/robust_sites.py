"""Small sites with unequal tables, and their robust problem solved by an outside solver or written out plainly."""

import functools
import math

import cvxpy as cp
import jax
import numpy as np

import fedhedge as fh
from federations import begin
from fedhedge import dro, streams

OPTIONS = {"local_steps": 1, "batch_size": None, "evaluate_on": (), "weighting": "rows"}
DUAL = {"l1": "inf", "l2": 2, "linf": 1}


@functools.cache
def sites(counts=(12, 20, 31), classes=3, features=4, seed=1) -> fh.data.Clients:
    """Rows of norm at most 1 with a constant feature, and noisy labels of all classes."""
    rng = np.random.default_rng(seed)
    n = sum(counts)
    X = rng.normal(size=(n, features))
    X[:, -1] = 1.0
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    y = (X @ rng.normal(size=(classes, features)).T + 0.3 * rng.gumbel(size=(n, classes))).argmax(1)
    y[:classes] = np.arange(classes)
    return fh.data.Clients.from_splits((X, y, np.repeat(np.arange(len(counts)), counts)))


def tables(clients):
    """Each site's rows and labels."""
    return [clients.rows("train", g) for g in range(len(clients))]


def shares(clients):
    """alpha_g under weighting="rows"."""
    counts = clients.counts("train")
    return counts / counts.sum()


def radii(radius, clients):
    return np.broadcast_to(radius, len(clients)).tolist()


def risk(model, clients, radius, label_cost, norm):
    """sum_g alpha_g F_g(M)."""
    parts = zip(shares(clients), tables(clients), radii(radius, clients), strict=True)
    return sum(share * dro.worst_case_risk(model, X, y, r, label_cost, norm).value for share, (X, y), r in parts)


def optimum(clients, radius, label_cost, norm, absent=(), weight=0.0):
    """Minimum over M of sum_g alpha_g F_g(M), with weight/2 ||M||^2 in place of F_g for sites that are absent."""
    classes, features = len(clients.classes), clients.features.shape[1]
    M = cp.Variable((classes, features))
    value, constraints = 0.0, []
    pairs = [(j, k) for j in range(classes) for k in range(classes) if j != k]
    for g, (share, (X, y), r) in enumerate(zip(shares(clients), tables(clients), radii(radius, clients), strict=True)):
        if g in absent:
            value += share * weight / 2 * cp.sum_squares(M)
            continue
        lam, loss = cp.Variable(), cp.Variable(len(y), nonneg=True)
        for j, k in pairs:
            if j < k:
                constraints.append(cp.norm(M[j] - M[k], DUAL[norm]) <= lam)
            margins = 1.0 + X @ (M[j] - M[k])
            own = y == k
            if own.any():
                constraints.append(loss[own] >= margins[own])
            if math.isfinite(label_cost) and (~own).any():
                constraints.append(loss[~own] >= margins[~own] - label_cost * lam)
        value += share * (r * lam + cp.sum(loss) / len(y))
    problem = cp.Problem(cp.Minimize(value), constraints)
    problem.solve(solver="CLARABEL")
    return problem.value, M.value


def hinge_subgradient(M, X, y):
    """Mean over rows of a subgradient of max(0, 1 + max_{k != y} m_k.x - m_y.x)."""
    mean = np.zeros_like(M)
    for x, own in zip(X, y, strict=True):
        scores = M @ x
        rival = max((k for k in range(len(M)) if k != own), key=lambda k: scores[k])
        if 1 + scores[rival] - scores[own] > 0:
            mean[rival] += x / len(X)
            mean[own] -= x / len(X)
    return mean


def noise(seed, client, round, number, shape):
    """The standard normal numbers of release `number` of a client in a round."""
    key = streams.key(seed, streams.Purpose.NOISE)
    for step in (client, round, number):
        key = jax.random.fold_in(key, step)
    with jax.enable_x64(True):
        return np.asarray(jax.random.normal(key, shape))


def after(simulation):
    """The simulation, run to its end."""
    with jax.enable_x64(True):
        simulation.run(None, False, False)
    return simulation


def watched(algorithm, clients, law, **options):
    """The server's states after each round, and the simulation at its end."""
    states = []
    with jax.enable_x64(True):
        simulation = begin(
            algorithm, fh.models.CrammerSinger(), clients, law, **OPTIONS | {"evaluate_every": 1} | options
        )
        accept = simulation.accept

        def accept_and_keep(*arguments):
            accept(*arguments)
            states.append(jax.tree.map(np.asarray, simulation.state.server))

        simulation.accept = accept_and_keep
        simulation.run(None, False, False)
    return states, simulation

"""Five clients with |x'w - y| as loss: every objective of this family is a linear programme."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

import fedhedge as fh

Floats = NDArray[np.float64]
CLIENTS, ROWS = 5, 4
# Clients lie round lines of their own; the last one's is far off, and it is rarely there.
LINES = np.array([(0.0, 1.0), (0.4, 0.5), (-0.3, 1.5), (0.9, 0.0), (2.0, -1.0)])
LAW = fh.availability.FixedSize((8.0, 8.0, 4.0, 2.0, 0.5), size=2)
UNIFORM = np.full(CLIENTS, 1 / CLIENTS)


@functools.cache
def problem() -> tuple[fh.data.Clients, fh.models.Functional]:
    """Clients with four rows each, features (1, z), and the model |x'w - y|."""
    rng = np.random.default_rng(3)
    z = rng.uniform(-1, 1, CLIENTS * ROWS)
    owner = np.repeat(np.arange(CLIENTS), ROWS)
    y = LINES[owner, 0] + LINES[owner, 1] * z + 0.2 * rng.normal(size=len(z))
    rows = np.column_stack([np.ones_like(z), z, y]).astype(np.float32)
    clients = fh.data.Clients.from_splits((rows, np.zeros(len(rows)), owner))
    model = fh.models.Functional(
        init=lambda key: jnp.zeros(2), loss=lambda w, x, y: jnp.abs(x[:, :2] @ w - x[:, 2]), convex=True
    )
    return clients, model


def losses(w: Floats) -> Floats:
    """|x'w - y| of every row."""
    rows = problem()[0].rows("train")[0].astype(float)
    found: Floats = np.abs(rows[:, :2] @ w - rows[:, 2])
    return found


def mass(weights: Sequence[float] | Floats) -> Floats:
    """Probability of each row: the client's weight, then uniform over its rows."""
    return np.repeat(np.asarray(weights), ROWS) / ROWS


def cvar(values: Floats, probabilities: Floats, alpha: float) -> float:
    """Mean of the worst alpha of a discrete distribution."""
    order = np.argsort(-values)
    before = np.concatenate([[0.0], np.cumsum(probabilities[order])[:-1]])
    return float(np.sum(np.clip(alpha - before, 0.0, probabilities[order]) * values[order]) / alpha)


def risk(
    w: Floats, weights: Sequence[float] | Floats, alphas: Sequence[float] = (), gammas: Sequence[float] = ()
) -> float:
    """(1 - sum gamma) E f + sum gamma_k CVaR_{alpha_k}(f), every row enumerated."""
    f, p = losses(w), mass(weights)
    return float((1 - sum(gammas)) * p @ f + sum(g * cvar(f, p, a) for a, g in zip(alphas, gammas, strict=True)))


@functools.cache
def optimum(
    weights: tuple[float, ...],
    alphas: tuple[float, ...] = (),
    gammas: tuple[float, ...] = (),
    limit: tuple[float, float] | None = None,
) -> Floats:
    """Minimiser of `risk`, by a linear programme; limit: (alpha, bound) asks for CVaR_alpha(f) <= bound besides.

    Variables: w, f [rows], and for each tail beta and the overshoot s [rows] >= f - beta.
    """
    rows = problem()[0].rows("train")[0].astype(float)
    p, n = mass(weights), len(rows)
    tails = [*alphas, *(() if limit is None else limit[:1])]
    width = 2 + n + len(tails) * (1 + n)
    cost, upper, bounds = np.zeros(width), [], []
    cost[2 : 2 + n] = (1 - sum(gammas)) * p
    for sign in (1.0, -1.0):
        block = np.zeros((n, width))
        block[:, :2], block[:, 2 : 2 + n] = sign * rows[:, :2], -np.eye(n)
        upper.append(block)
        bounds.append(sign * rows[:, 2])
    for k, alpha in enumerate(tails):
        at = 2 + n + k * (1 + n)
        block = np.zeros((n, width))
        block[:, 2 : 2 + n], block[:, at], block[:, at + 1 : at + 1 + n] = np.eye(n), -1.0, -np.eye(n)
        upper.append(block)
        bounds.append(np.zeros(n))
        tail = np.zeros(width)
        tail[at], tail[at + 1 : at + 1 + n] = 1.0, p / alpha
        if k < len(alphas):
            cost += gammas[k] * tail
        elif limit is not None:
            upper.append(tail[None])
            bounds.append(np.array([limit[1]]))
    free = [(None, None)] * 2 + [(0, None)] * (width - 2)
    found = linprog(cost, np.vstack(upper), np.concatenate(bounds), bounds=free)
    if found.status != 0:
        raise RuntimeError(f"the linear programme was not solved: {found.message}")
    best: Floats = found.x[:2]
    return best


def averaged(
    algorithm: fh.algorithms.Algorithm,
    rounds: int,
    law: fh.availability.Law = LAW,
    local_steps: int = 1,
    seed: int = 0,
) -> Floats:
    """The averaged iterate after many rounds, one row a mini-batch."""
    clients, model = problem()
    run = fh.simulate(
        algorithm, model, clients, law, rounds=rounds, local_steps=local_steps, batch_size=1, seed=seed,
        evaluate_every=rounds, evaluate_on=(), progress=False,
    )  # fmt: skip
    return np.asarray(run.average_params, float)

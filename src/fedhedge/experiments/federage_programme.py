"""Mean-CVaR over all mini-batches of the absolute-loss problem: optimum and dual weights by a linear programme."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from fedhedge.experiments.absolute_loss import CLIENTS, ROWS, Floats, cvar, losses, problem


@dataclass(frozen=True)
class Optimum:
    """w: the minimiser. value: the least risk. batch: weight of each mini-batch in the gradient there, summing to 1."""

    w: Floats
    value: float
    batch: Floats

    @property
    def client(self) -> Floats:
        """Weight of each client: the sum over its mini-batches, [N]."""
        total: Floats = self.batch.reshape(CLIENTS, -1).sum(axis=1)
        return total


@functools.cache
def batches(size: int) -> Floats:
    """Every mini-batch of every client as a row of shares, [CLIENTS * (ROWS choose size), CLIENTS * ROWS]."""
    chosen = list(itertools.combinations(range(ROWS), size))
    table = np.zeros((CLIENTS * len(chosen), CLIENTS * ROWS))
    for line, (client, rows) in enumerate(itertools.product(range(CLIENTS), chosen)):
        table[line, [client * ROWS + row for row in rows]] = 1 / size
    return table


def batch_mass(weights: Sequence[float], size: int) -> Floats:
    """p_i / N_i^b of each mini-batch, in the order of `batches`."""
    each = len(batches(size)) // CLIENTS
    return np.repeat(np.asarray(weights, float), each) / each


def batch_risk(w: Floats, weights: Sequence[float], alpha: float, gamma: float, size: int) -> float:
    """(1 - gamma) E f + gamma CVaR_alpha(f) over all mini-batches of `size` rows, f their mean loss."""
    f, mass = batches(size) @ losses(w), batch_mass(weights, size)
    return float((1 - gamma) * mass @ f + gamma * cvar(f, mass, alpha))


@functools.cache
def solve(weights: tuple[float, ...], alpha: float, gamma: float, size: int = 1) -> Optimum:
    """Minimise `batch_risk` over w, and read off the multipliers of the tail.

    Variables: w, the losses u of rows, beta, and s_j >= f_j - beta for each mini-batch j. The multiplier of that
    constraint is gamma q_j, with 0 <= q_j <= p_i / (N_i^b alpha) and sum 1: the dual weights of CVaR. The weight of
    a mini-batch is (1 - gamma) p_i / N_i^b + gamma q_j.
    """
    rows = problem()[0].rows("train")[0].astype(float)
    table, mass = batches(size), batch_mass(weights, size)
    n, count = len(rows), len(mass)
    cost = np.concatenate([np.zeros(2), (1 - gamma) * mass @ table, [gamma], gamma * mass / alpha])
    upper = np.zeros((2 * n + count, len(cost)))
    for sign, part in ((1.0, slice(0, n)), (-1.0, slice(n, 2 * n))):
        upper[part, :2], upper[part, 2 : 2 + n] = sign * rows[:, :2], -np.eye(n)
    upper[2 * n :, 2 : 2 + n], upper[2 * n :, 2 + n], upper[2 * n :, 3 + n :] = table, -1.0, -np.eye(count)
    bounds = np.concatenate([rows[:, 2], -rows[:, 2], np.zeros(count)])
    free = [(None, None)] * 2 + [(0, None)] * n + [(None, None)] + [(0, None)] * count
    found = linprog(cost, upper, bounds, bounds=free)
    if found.status != 0:
        raise RuntimeError(f"the linear programme was not solved: {found.message}")
    tail = -np.asarray(found.ineqlin.marginals)[2 * n :]
    return Optimum(np.asarray(found.x[:2]), float(found.fun), (1 - gamma) * mass + tail)

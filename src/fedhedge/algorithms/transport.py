"""Masked optimal transport between what clients should weigh and which sets of clients come."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedhedge.availability.base import Law
from fedhedge.availability.table import Table

Floats = NDArray[np.float64]

# Up to this many clients every subset is a column of the plan; beyond, the distinct ones of many draws are.
ENUMERABLE = 12
TOLERANCE = 1e-7
ITERATIONS = 3000
# exp of the lowest log u is still a normal number, so that no set of clients has a sum of zero.
LOWEST = -600.0


class Plan(NamedTuple):
    """Masked transport in product form: on the set S, client i weighs exp(log_u_i) / sum over S of exp(log_u_j).

    log_u: [N], -inf where the importance is 0. reached: E[weight of i], [N]. error: largest |reached_i - p_i|.
    inclusion: P(i in S). All given that S holds a client with p_i > 0: nothing happens in other rounds.
    exact: whether all subsets were enumerated; otherwise `reached` and `error` are of the sets that were drawn.
    """

    log_u: Floats
    reached: Floats
    error: float
    inclusion: Floats
    exact: bool


@functools.lru_cache(maxsize=32)
def solve(law: Law, importance: tuple[float, ...]) -> Plan:
    """The plan whose expected weights are the importance p [N], as nearly as availability lets it.

    Iterates log u <- log u + log p - log p_hat with p_hat_i = E[u_i / sum over S of u_j], the row scaling of iterative
    proportional fitting with the columns (sets) normalised exactly in between. It converges to p_hat = p where some
    plan with that support exists, for which p_i <= P(i in S) is necessary; elsewhere `error` stays away from 0.
    Source: Rahimi and Kalogerias 2025 (arXiv 2509.14444), without the enumeration of sets.
    """
    wanted = np.asarray(importance)
    present, probability, exact = support(law)
    matters = present[:, wanted > 0].any(axis=1)
    counted, probability = present[matters].astype(np.float64), probability[matters]
    probability = probability / max(probability.sum(), np.finfo(np.float64).tiny)
    inclusion = counted.T @ probability
    if not exact and (wanted > 0).all():
        inclusion = law.inclusion_probabilities() / (1.0 - law.empty_probability())
    moving = (wanted > 0) & (inclusion > 0)
    log_u = np.where(wanted > 0, 0.0, -np.inf)
    for iteration in range(ITERATIONS + 1):
        u = np.exp(np.maximum(log_u - log_u.max(), LOWEST)) * (wanted > 0)
        reached = u * (counted.T @ (probability / (counted @ u)))
        if np.abs(reached - wanted).max() <= TOLERANCE or iteration == ITERATIONS:
            break
        log_u[moving] += np.log(wanted[moving]) - np.log(reached[moving])
    return Plan(log_u - log_u.max(), reached, float(np.abs(reached - wanted).max()), inclusion, exact)


def support(law: Law) -> tuple[NDArray[np.bool_], Floats, bool]:
    """(sets bool[K, N], their probabilities given that a set is not empty, whether these are all sets)."""
    clients = law.count()
    if isinstance(law, Table):
        present, chance = law.table()
        kept = present.any(axis=1) & (chance > 0)
        return present[kept], chance[kept] / chance[kept].sum(), True
    if clients > ENUMERABLE or not law.exact:
        drawn = law.monte_carlo()
        present, counts = np.unique(drawn[drawn.any(axis=1)], axis=0, return_counts=True)
        return present, counts / counts.sum(), False
    every = (np.arange(2**clients)[:, None] >> np.arange(clients)) & 1 == 1
    # F at the indicator of A is P(S within A); inclusion and exclusion, one client at a time, gives P(S = A).
    probability = np.array([law.generating(row[None].astype(np.float64))[0][0] for row in every]).reshape([2] * clients)
    for axis in range(clients):
        without, within = np.take(probability, 0, axis), np.take(probability, 1, axis)
        probability = np.stack([without, within - without], axis)
    flat = np.where(probability.ravel() > 1e-12, probability.ravel(), 0.0)
    kept = (flat > 0) & every.any(axis=1)
    return every[kept], flat[kept] / flat[kept].sum(), True

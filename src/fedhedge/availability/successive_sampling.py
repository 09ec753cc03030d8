"""Successive sampling without replacement: the law of the first clients to ring exponential clocks.

Drawing clients one by one with probability proportional to a prior r among those left is the same as giving client
i a clock that rings after an exponential time of rate r_i and taking the first M to ring. Given the time t of the
first ring that comes too late, every client of S has rung before t and no other has, so that (Wallenius 1963)

    R(S) = integral over t > 0 of sum_{l not in S} r_l prod_{k in S} (1 - e^{-r_k t}) prod_{k not in S} e^{-r_k t} dt.

Sums over subsets become coefficients of u^M in prod_k (e^{-r_k t} + (1 - e^{-r_k t}) z_k u), which a dynamic programme
over the clients gives in terms that are all positive; no subset is enumerated.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedhedge.availability import products

_NEGLIGIBLE = 1e-20
_TOLERANCE = 1e-11
_REFINEMENTS = 12


def generating(rates: NDArray[np.float64], size: int, z: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Generating function of the first `size` of the clients with these rates, and its gradient (`Law.generating`).

    The integral over t is a trapezoidal rule in x = log t, refined until two rules agree. Its error falls
    geometrically in the number of nodes, and squares with each refinement, so that the finer of two rules which agree
    within 1e-11 is exact to rounding; on the log scale rates may differ by any number of orders of magnitude.
    """
    active = np.flatnonzero(rates)
    if len(active) == size:
        return products.independent((rates > 0).astype(np.float64), z)
    chosen = rates[active] / rates.sum()
    left, right = _ends(chosen, size)
    step = 0.5
    x = np.arange(left, right + step, step)
    inside = step * _gradient_density(chosen, size, z[:, active], x)
    for _ in range(_REFINEMENTS):
        finer = (inside + step * _gradient_density(chosen, size, z[:, active], x + step / 2)) / 2
        difference = np.abs(finer - inside)
        inside = finer
        if (difference <= _TOLERANCE * np.abs(finer).max(axis=0)).all():
            break
        x = np.sort(np.concatenate([x, x + step / 2]))
        step /= 2
    else:
        raise ArithmeticError(f"the inclusion probabilities did not settle for rates {rates.tolist()}, size {size}")
    gradient = np.zeros(z.shape, dtype=inside.dtype)
    gradient[:, active] = inside
    # F is homogeneous of degree `size`, hence Euler's identity.
    return (z * gradient).sum(axis=1) / size, gradient


def _ends(rates: NDArray[np.float64], size: int) -> tuple[float, float]:
    """Interval of log t outside which the (size + 1)-th ring falls with negligible probability; rates sum to 1.

    P(size + 1 rings before t) <= t^(size + 1) / (size + 1)!, and, with r the (size + 1)-th largest rate,
    P(fewer before t) <= (size + 1) e^{-r t}.
    """
    left = (math.log(_NEGLIGIBLE) + math.lgamma(size + 2)) / (size + 1)
    slowest = float(np.sort(rates)[-size - 1])
    return left, math.log((math.log(size + 1) - math.log(_NEGLIGIBLE)) / slowest)


def _gradient_density(rates: NDArray[np.float64], size: int, z: NDArray[Any], x: NDArray[np.float64]) -> NDArray[Any]:
    """Sum over the nodes x = log t of the integrand (times dt/dx = t) of dF/dz_i, [K, N].

    Halving the set of clients, and carrying down the product over the half that was left aside, gives the product over
    all clients but one for every client in N log N multiplications by a linear factor.
    """
    t = np.exp(x)
    late = np.exp(-np.outer(rates, t))
    early = -np.expm1(-np.outer(rates, t))
    shape = (len(z), len(t), size)
    density = np.empty(z.shape, dtype=z.dtype)

    def times(plain: NDArray[Any], marked: NDArray[Any], k: int) -> tuple[NDArray[Any], NDArray[Any]]:
        outside = late[k][None, :, None]
        taken = (z[:, k, None] * early[k])[:, :, None]
        # `marked` holds the terms in which one of the clients outside S is the one that rings at t.
        new_plain, new_marked = outside * plain, outside * (marked + rates[k] * plain)
        new_plain[..., 1:] += taken * plain[..., :-1]
        new_marked[..., 1:] += taken * marked[..., :-1]
        return new_plain, new_marked

    def descend(low: int, high: int, plain: NDArray[Any], marked: NDArray[Any]) -> None:
        if high - low == 1:
            density[:, low] = marked[..., -1] @ (early[low] * t)
            return
        middle = (low + high) // 2
        for first, last, others in ((low, middle, range(middle, high)), (middle, high, range(low, middle))):
            part = plain, marked
            for k in others:
                part = times(*part, k)
            descend(first, last, *part)

    plain = np.zeros(shape, dtype=z.dtype)
    plain[..., 0] = 1
    descend(0, len(rates), plain, np.zeros(shape, dtype=z.dtype))
    return density

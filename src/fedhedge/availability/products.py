"""Products over clients, the building block of the laws' probability generating functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def all_but_one(factors: NDArray[Any]) -> NDArray[Any]:
    """Product over all other columns, [K, N] -> [K, N], without a division, so that factors may be zero."""
    ones = np.ones((len(factors), 1), dtype=factors.dtype)
    before = np.cumprod(np.hstack([ones, factors[:, :-1]]), axis=1)
    after = np.cumprod(np.hstack([ones, factors[:, :0:-1]]), axis=1)[:, ::-1]
    return before * after


def independent(probabilities: NDArray[np.float64], z: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Generating function of independent clients and its gradient (see `Law.generating`).

    F(z) = prod_j (1 - q_j + q_j z_j), dF/dz_i = q_i prod_{j != i} (1 - q_j + q_j z_j).
    `probabilities` is q[N], z is [K, N]; returns [K] and [K, N].
    """
    factors = 1 + probabilities * (z - 1)
    return factors.prod(axis=1), probabilities * all_but_one(factors)

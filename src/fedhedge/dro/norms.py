"""Dual norms on the differences between rows of a model, and the slope phi that they give the loss.

Every function takes `xp`, numpy or jax.numpy, so that one formula serves the solver and compiled rounds.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from fedhedge import checks

# Each norm on features with the name of its dual.
DUAL = {"l1": "linf", "l2": "l2", "linf": "l1"}
NORMS = tuple(DUAL)

Array = Any


def dual_norm(name: str, rows: Array, xp: ModuleType = np) -> Array:
    """Dual norm of each row: ||d||_* = max {d.u : ||u|| <= 1}, where `name` is the norm on features.

    l1 gives max |d_p|, l2 gives the Euclidean norm, linf gives sum |d_p|.

    `rows` has shape [..., P]; the result has shape [...]. Raises InvalidInput for an unknown name.
    """
    checks.one_of("norm", name, NORMS)
    if name == "l1":
        return xp.abs(rows).max(-1)
    if name == "l2":
        return xp.sqrt((rows * rows).sum(-1))
    return xp.abs(rows).sum(-1)


def steepest_direction(name: str, rows: Array, xp: ModuleType = np) -> Array:
    """A feature direction u of unit norm that attains d.u = ||d||_* for each row d (zero where d is zero).

    It is a subgradient of the dual norm. `rows` and the result have shape [..., P]. Raises InvalidInput for an
    unknown name.
    """
    checks.one_of("norm", name, NORMS)
    if name == "l1":
        largest = xp.abs(rows).argmax(-1)[..., None] == xp.arange(rows.shape[-1])
        return xp.where(largest, xp.sign(rows), 0.0)
    if name == "l2":
        length = dual_norm(name, rows, xp)[..., None]
        return rows / xp.where(length > 0.0, length, 1.0)
    return xp.sign(rows)


def pair_norms(coef: Array, norm: str, xp: ModuleType = np) -> Array:
    """||m_j - m_k||_* for all ordered pairs, shape [K, K], for a model `coef` of shape [K, P]."""
    return dual_norm(norm, coef[:, None, :] - coef[None, :, :], xp)


def phi(coef: Array, norm: str, xp: ModuleType = np) -> Array:
    """Largest slope of the loss in the features: phi(M) = max over pairs j != k of ||m_j - m_k||_*.

    `coef` has shape [K, P]; `norm` is the norm on features. Source: the Lipschitz constant of the
    loss that bounds the multiplier in Shafieezadeh-Abadeh, Kuhn and Mohajerin Esfahani (2019), for several classes.
    """
    return pair_norms(coef, norm, xp).max()


def phi_subgradient(coef: Array, norm: str, xp: ModuleType = np) -> Array:
    """A subgradient of phi at `coef`: (e_j - e_k) u^T for a pair that attains it and its steepest direction u.

    Shape [K, P]. At a model whose rows are all equal it is zero. Raises InvalidInput for an unknown norm.
    """
    classes = coef.shape[0]
    pair = pair_norms(coef, norm, xp).argmax()
    order = xp.arange(classes)
    sign = (order == pair // classes) * 1.0 - (order == pair % classes) * 1.0
    return sign[:, None] * steepest_direction(norm, sign @ coef, xp)

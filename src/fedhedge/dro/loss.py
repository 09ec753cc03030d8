"""Crammer-Singer loss, its worst case over features and labels at a given multiplier, and subgradients.

Every function takes `xp`, numpy or jax.numpy, so that one formula serves the solver and compiled rounds. Labels are
class indices 0..K-1, K being the number of rows of the model.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

Array = Any


class RobustLoss(NamedTuple):
    """Worst case h_i of each row and the affine piece 1 + (m_rival - m_label).x - price that attains it.

    `value` [N]; `rival` and `label` [N], class indices; `flipped` [N], whether the label is not the row's own;
    `active` [N], whether the piece is above zero. Where `active` is false the row's subgradient is zero.
    """

    value: Array
    rival: Array
    label: Array
    flipped: Array
    active: Array


class LabelPieces(NamedTuple):
    """Margin violations of each row, not cut at zero: under its own label, and under its worst other label.

    Five arrays of shape [N]; `rival` names the class j in 1 + m_j.x - m_label.x.
    """

    own: Array
    own_rival: Array
    other: Array
    other_label: Array
    other_rival: Array


def label_pieces(coef: Array, X: Array, y: Array, xp: ModuleType = np) -> LabelPieces:
    """The largest margin violation 1 + max_{j != k} m_j.x - m_k.x of each row under its own label and the others.

    Inside, classes come first, [K, N], and every choice is a comparison with an extremum: that vectorises over rows,
    side by side in compiled rounds too, where argmax along a short last axis and picking by index do not.
    """
    scores = coef @ X.T
    classes = xp.arange(coef.shape[0])[:, None]
    top, best = _largest(scores, classes, xp)
    # Every label's strongest rival is the best class, except that the best class has the second best.
    next_top, second = _largest(xp.where(classes == best, -xp.inf, scores), classes, xp)
    own = classes == y
    own_is_best = y == best
    own_margin = 1.0 + xp.where(own_is_best, next_top, top) - xp.where(own, scores, 0.0).sum(0)
    margins = 1.0 + xp.where(classes == best, next_top, top) - scores
    other_margin, other = _largest(xp.where(own, -xp.inf, margins), classes, xp)
    return LabelPieces(
        own_margin,
        xp.where(own_is_best, second, best),
        other_margin,
        other,
        xp.where(other == best, second, best),
    )


def crammer_singer_loss(coef: Array, X: Array, y: Array, xp: ModuleType = np) -> Array:
    """Loss of each row: l(M; x, y) = max(0, 1 + max_{k != y} m_k.x - m_y.x).

    `coef` [K, P], `X` [N, P], `y` [N]; the result has shape [N]. Source: Crammer and Singer (2001).
    """
    return xp.maximum(0.0, label_pieces(coef, X, y, xp).own)


def robust_loss(coef: Array, lam: Array, X: Array, y: Array, label_cost: Array, xp: ModuleType = np) -> RobustLoss:
    """Worst case over labels at multiplier lam: h_i = max(l(M; x_i, y_i), max_{k != y_i} l(M; x_i, k) - kappa lam).

    `label_cost` is kappa >= 0, infinite where labels are trusted. Shapes as in `crammer_singer_loss`. At a tie the
    row's own label is preferred. Source: the integrand of the exact Wasserstein-1 dual with transport cost
    ||x - x'|| + kappa 1{y != y'}.
    """
    pieces = label_pieces(coef, X, y, xp)
    trusted = xp.isinf(label_cost)
    # Infinity never meets a multiplication, which would make 0 * inf of it.
    price = xp.where(trusted, xp.inf, xp.where(trusted, 0.0, label_cost) * lam)
    flipped = pieces.other - price > pieces.own
    value = xp.where(flipped, pieces.other - price, pieces.own)
    rival = xp.where(flipped, pieces.other_rival, pieces.own_rival)
    label = xp.where(flipped, pieces.other_label, y)
    active = value > 0.0
    return RobustLoss(xp.maximum(0.0, value), rival, label, flipped & active, active)


def risk_subgradient(
    coef: Array,
    lam: Array,
    X: Array,
    y: Array,
    label_cost: Array,
    weights: Array | None = None,
    xp: ModuleType = np,
) -> tuple[Array, Array]:
    """A subgradient of sum_i w_i h_i(M, lam) in M, shape [K, P], and in lam, a scalar.

    In M each row gives (e_rival - e_label) x^T, of Euclidean norm sqrt(2) ||x||; in lam it gives -kappa where its
    label is flipped. `weights` [N] are 1/N each when None; rows that only pad an array get weight 0.
    """
    worst = robust_loss(coef, lam, X, y, label_cost, xp)
    weights = xp.full(X.shape[0], 1.0 / X.shape[0]) if weights is None else weights
    classes = xp.arange(coef.shape[0])[:, None]
    pull = weights * worst.active
    in_coef = (xp.where(worst.rival == classes, pull, 0.0) - xp.where(worst.label == classes, pull, 0.0)) @ X
    finite_cost = xp.where(xp.isinf(label_cost), 0.0, label_cost)
    return in_coef, -finite_cost * (weights * worst.flipped).sum()


def _largest(table: Array, classes: Array, xp: ModuleType) -> tuple[Array, Array]:
    """The largest of each column of a table [K, N], and the first class that has it, both [N]."""
    largest = table.max(0)
    return largest, xp.where(table == largest, classes, len(table)).min(0)

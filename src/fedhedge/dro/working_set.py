"""The affine pieces that the client solver keeps: a few for each row's loss, a few for the slope phi.

The loss h_i of a row is the largest of the pieces (j, k): 1 + (m_j - m_k).x_i - kappa lam 1{k != y_i}, and of zero,
which is written as a piece with j = k. The constraint lam >= phi(M) is the family of cuts lam >= (m_j - m_k).u over
pairs and feature directions of unit norm. Few of either bind at the optimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fedhedge.dro.loss import label_margins
from fedhedge.dro.norms import dual_norm, steepest_direction
from fedhedge.dro.problem import Floats, Ints, Problem

# A piece stays when it carries weight, or when it is this near to the largest piece of its row.
_NEAR = 1e-6
_WEIGHT = 1e-7
# A piece or a cut is missing when it exceeds the model by more than this.
_VIOLATION = 1e-9


class Pieces(NamedTuple):
    """Piece (rival, label) of `row`; rival equal to label is the zero piece. Three arrays of shape [m]."""

    row: Ints
    rival: Ints
    label: Ints

    def signs(self, classes: int) -> Floats:
        """e_rival - e_label, shape [m, K]."""
        identity = np.eye(classes)
        return identity[self.rival] - identity[self.label]

    def constants(self) -> Floats:
        """1 for a margin piece, 0 for the zero piece."""
        return (self.rival != self.label) * 1.0

    def flips(self, y: Ints) -> Floats:
        """1 where the piece prices a flipped label, else 0."""
        return ((self.rival != self.label) & (self.label != y[self.row])) * 1.0


class Cuts(NamedTuple):
    """Cuts lam >= (m_first - m_second).u, with the curvature of phi that each carries (0 for polyhedral norms)."""

    first: Ints
    second: Ints
    direction: Floats
    curvature: Floats

    def signs(self, classes: int) -> Floats:
        """e_first - e_second, shape [q, K]."""
        identity = np.eye(classes)
        return identity[self.first] - identity[self.second]


@dataclass(frozen=True)
class WorkingSet:
    """`base` holds one piece of every row, in row order; `extra` the further pieces of the rows at a kink."""

    base: Pieces
    extra: Pieces
    cuts: Cuts


@dataclass(frozen=True)
class Point:
    """Solution of the reduced problem: model, multiplier lam, weights of the extra pieces and of the cuts (times N)."""

    coef: Floats
    lam: float
    extra_weight: Floats
    cut_weight: Floats


class Evaluation(NamedTuple):
    """The true problem at a point: worst own-label and flipped pieces of each row, and norms of all pair differences.

    `flipped` is -inf where labels are trusted, and is not yet priced.
    """

    own: Floats
    own_rival: Ints
    flipped: Floats
    flipped_label: Ints
    flipped_rival: Ints
    pairs: tuple[Ints, Ints]
    differences: Floats
    norms: Floats

    @property
    def slope(self) -> float:
        """phi(M)."""
        return float(self.norms.max())


def evaluate(coef: Floats, problem: Problem) -> Evaluation:
    """Worst pieces of every row and norm of every pair at a model."""
    margins, rivals = label_margins(coef, problem.X)
    every = np.arange(len(problem.y))
    own, own_rival = margins[every, problem.y], rivals[every, problem.y]
    margins[every, problem.y] = -math.inf
    label = margins.argmax(1)
    flipped = margins[every, label]
    if math.isinf(problem.label_cost):
        flipped = np.full(len(every), -math.inf)
    first, second = np.triu_indices(problem.classes, 1)
    differences = coef[first] - coef[second]
    norms = dual_norm(problem.norm, differences)
    return Evaluation(own, own_rival, flipped, label, rivals[every, label], (first, second), differences, norms)


def finite_cost(problem: Problem) -> float:
    """kappa, or zero where labels are trusted and no piece is priced."""
    return problem.label_cost if math.isfinite(problem.label_cost) else 0.0


def refreshed(cuts: Cuts, coef: Floats, norm: str) -> Cuts:
    """Cuts whose directions follow the model; only the Euclidean norm has a direction that moves with it."""
    if norm != "l2":
        return cuts
    differences = coef[cuts.first] - coef[cuts.second]
    direction = steepest_direction(norm, differences)
    zero = ~direction.any(1)
    direction[zero] = cuts.direction[zero]
    return cuts._replace(direction=direction)


def next_set(problem: Problem, current: WorkingSet, point: Point, truth: Evaluation, grow: bool) -> WorkingSet:
    """Keep what is active at the point; when `grow`, add the pieces and the cuts that the true problem is missing."""
    return WorkingSet(
        *_next_pieces(problem, current, point, truth, grow), _next_cuts(problem, current.cuts, point, truth, grow)
    )


def _next_pieces(
    problem: Problem, current: WorkingSet, point: Point, truth: Evaluation, grow: bool
) -> tuple[Pieces, Pieces]:
    rows = len(problem.y)
    price = finite_cost(problem) * point.lam
    pieces = Pieces(*(np.concatenate(both) for both in zip(current.base, current.extra, strict=True)))
    base_weight = 1.0 - np.bincount(current.extra.row, point.extra_weight, minlength=rows)
    weight = np.concatenate([base_weight, point.extra_weight])
    slope = (pieces.signs(problem.classes) @ point.coef * problem.X[pieces.row]).sum(1)
    value = pieces.constants() + slope - price * pieces.flips(problem.y)
    highest = np.full(rows, -math.inf)
    np.maximum.at(highest, pieces.row, value)
    kept = (weight > _WEIGHT) | (value > highest[pieces.row] - _NEAR)
    groups = [tuple(column[kept] for column in pieces)]
    if grow:
        floor = np.maximum(highest, 0.0) + _VIOLATION
        own = np.flatnonzero(truth.own > floor)
        flip = np.flatnonzero(truth.flipped - price > floor)
        zero = np.flatnonzero(highest < -_VIOLATION)
        groups += [
            (own, truth.own_rival[own], problem.y[own]),
            (flip, truth.flipped_rival[flip], truth.flipped_label[flip]),
            (zero, zero * 0, zero * 0),
        ]
    pieces = Pieces(*(np.concatenate(columns) for columns in zip(*groups, strict=True)))
    weight = np.concatenate([weight[kept], np.zeros(len(pieces.row) - int(kept.sum()))])
    # The heaviest piece of each row comes first and becomes its base.
    order = np.lexsort((-weight, pieces.row))
    pieces = Pieces(*(column[order] for column in pieces))
    first = np.concatenate([[True], pieces.row[1:] != pieces.row[:-1]])
    return Pieces(*(column[first] for column in pieces)), Pieces(*(column[~first] for column in pieces))


def _next_cuts(problem: Problem, cuts: Cuts, point: Point, truth: Evaluation, grow: bool) -> Cuts:
    differences = point.coef[cuts.first] - point.coef[cuts.second]
    near = (cuts.direction * differences).sum(1) > point.lam - _NEAR
    kept = (point.cut_weight > _WEIGHT) | near
    curvature = np.zeros(len(kept))
    if problem.norm == "l2":
        length = np.maximum(dual_norm("l2", differences), 1e-12)
        curvature = point.cut_weight / length
    cuts = Cuts(*(column[kept] for column in refreshed(cuts, point.coef, problem.norm)[:3]), curvature[kept])
    # At radius 0 the multiplier costs nothing, and phi does not bind.
    if not grow or problem.radius == 0.0:
        return cuts
    missing = truth.norms > point.lam + _VIOLATION
    first, second = truth.pairs
    if problem.norm == "l2":
        # One cut a pair is enough: its direction follows the model.
        missing &= ~np.isin(first * problem.classes + second, cuts.first * problem.classes + cuts.second)
    new = np.flatnonzero(missing)
    direction = steepest_direction(problem.norm, truth.differences[new])
    added = Cuts(first[new], second[new], direction, np.zeros(len(new)))
    return Cuts(*(np.concatenate(both) for both in zip(cuts, added, strict=True)))

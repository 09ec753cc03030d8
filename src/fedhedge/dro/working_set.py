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

from fedhedge.dro.loss import LabelPieces, label_pieces
from fedhedge.dro.norms import dual_norm, steepest_direction
from fedhedge.dro.problem import Floats, Ints, Problem

# A piece stays when it carries weight, or when it is this near to the largest piece of its row.
_NEAR = 1e-6
_WEIGHT = 1e-7
# A piece or a cut is missing when it exceeds the model by more than this.
_VIOLATION = 1e-9
# Euclidean cuts of one pair at a larger cosine than this are one cut.
_SAME_DIRECTION = 0.99


class Pieces(NamedTuple):
    """Piece (rival, label) of `row`; rival equal to label is the zero piece. Three arrays of shape [m]."""

    row: Ints
    rival: Ints
    label: Ints

    def signs(self, classes: int) -> Floats:
        """e_rival - e_label, shape [m, K]."""
        identity = np.eye(classes)
        signs: Floats = identity[self.rival] - identity[self.label]
        return signs

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
        signs: Floats = identity[self.first] - identity[self.second]
        return signs


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
    """The true problem at a model: worst pieces of every row, and all pair differences with their dual norms."""

    pieces: LabelPieces
    first: Ints
    second: Ints
    differences: Floats
    norms: Floats


def evaluate(coef: Floats, problem: Problem) -> Evaluation:
    """Worst pieces of every row and norm of every pair at a model."""
    first, second = np.triu_indices(problem.classes, 1)
    differences = coef[first] - coef[second]
    norms = dual_norm(problem.norm, differences)
    return Evaluation(label_pieces(coef, problem.X, problem.y), first, second, differences, norms)


def finite_cost(problem: Problem) -> float:
    """kappa, or zero where labels are trusted and no piece is priced."""
    return problem.label_cost if math.isfinite(problem.label_cost) else 0.0


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
        worst = truth.pieces
        own = np.flatnonzero(worst.own > floor)
        flip = np.flatnonzero((worst.other - price > floor) & math.isfinite(problem.label_cost))
        zero = np.flatnonzero(highest < -_VIOLATION)
        groups += [
            (own, worst.own_rival[own], problem.y[own]),
            (flip, worst.other_rival[flip], worst.other_label[flip]),
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
    reach = (cuts.direction * (point.coef[cuts.first] - point.coef[cuts.second])).sum(1)
    kept = (point.cut_weight > _WEIGHT) | (reach > point.lam - _NEAR)
    # At radius 0 the multiplier costs nothing, and phi does not bind.
    missing = (truth.norms > point.lam + _VIOLATION) & (grow and problem.radius > 0.0)
    first, second = truth.first, truth.second
    curvature = np.zeros(len(first))
    if problem.norm == "l2":
        pair = np.searchsorted(first * problem.classes + second, cuts.first * problem.classes + cuts.second)
        weight = np.bincount(pair, point.cut_weight, minlength=len(first))
        # The direction follows the model, and one cut a pair is enough, until the pair is about to collapse to zero,
        # where the norm has a kink and several directions share the weight.
        missing = (weight > _WEIGHT) & (truth.norms > 0.0) | missing
        cosine = reach / np.maximum(truth.norms[pair], 1e-300)
        kept &= ~missing[pair] | (cosine < _SAME_DIRECTION)
        curvature = weight / np.maximum(truth.norms, 1e-300)
    new = np.flatnonzero(missing)
    added = (first[new], second[new], steepest_direction(problem.norm, truth.differences[new]), curvature[new])
    old = (cuts.first[kept], cuts.second[kept], cuts.direction[kept], np.zeros(int(kept.sum())))
    return Cuts(*(np.concatenate(both) for both in zip(old, added, strict=True)))

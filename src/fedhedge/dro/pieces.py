"""Affine pieces of the rows' robust losses, and which of them the client solver keeps."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fedhedge.dro.loss import LabelPieces
from fedhedge.dro.problem import NEAR, VIOLATION, WEIGHT, Floats, Ints, Problem

# Pieces of one kind that are added at once: as many times the size of the model, and at least so many.
_TIMES, _FEWEST = 4, 200


class Pieces(NamedTuple):
    """Pieces 1 + (m_rival - m_label).x_row - kappa lam 1{label is not the row's own}, three arrays of shape [m].

    A piece whose rival is its label is the zero piece.
    """

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
        return np.where(self.rival != self.label, 1.0, 0.0)

    def flips(self, y: Ints) -> Floats:
        """1 where the piece prices a flipped label, else 0."""
        return np.where((self.rival != self.label) & (self.label != y[self.row]), 1.0, 0.0)


def next_pieces(
    problem: Problem,
    base: Pieces,
    extra: Pieces,
    extra_weight: Floats,
    coef: Floats,
    lam: float,
    worst: LabelPieces | None,
    trim: bool,
) -> tuple[Pieces, Pieces]:
    """Base and extra pieces with those that are missing among the `worst` ones at (M, lam), if these are given.

    `trim` drops pieces that are not active there. Every row keeps at least one piece; its heaviest becomes its base.
    """
    rows = len(problem.y)
    price = problem.finite_cost * lam
    pieces = Pieces(*(np.concatenate(both) for both in zip(base, extra, strict=True)))
    base_weight = 1.0 - np.bincount(extra.row, extra_weight, minlength=rows)
    weight = np.concatenate([base_weight, extra_weight])
    slope = (pieces.signs(problem.classes) @ coef * problem.X[pieces.row]).sum(1)
    value = pieces.constants() + slope - price * pieces.flips(problem.y)
    highest = np.full(rows, -math.inf)
    np.maximum.at(highest, pieces.row, value)
    kept = (weight > WEIGHT) | (value > highest[pieces.row] - NEAR) | (not trim)
    groups = [tuple(column[kept] for column in pieces)]
    if worst is not None:
        groups += _missing(problem, highest, price, worst)
    pieces = Pieces(*(np.concatenate(columns) for columns in zip(*groups, strict=True)))
    weight = np.concatenate([weight[kept], np.zeros(len(pieces.row) - int(kept.sum()))])
    order = np.lexsort((-weight, pieces.row))
    pieces = Pieces(*(column[order] for column in pieces))
    first = np.concatenate([[True], pieces.row[1:] != pieces.row[:-1]])
    return Pieces(*(column[first] for column in pieces)), Pieces(*(column[~first] for column in pieces))


def _missing(problem: Problem, highest: Floats, price: float, worst: LabelPieces) -> list[tuple[Ints, Ints, Ints]]:
    """Own-label, flipped and zero pieces above the highest kept piece of their row."""
    floor = np.maximum(highest, 0.0)
    own = _worst(worst.own - floor, problem)
    flip = _worst(worst.other - price - floor, problem) if math.isfinite(problem.label_cost) else own[:0]
    zero = _worst(-highest, problem)
    return [
        (own, worst.own_rival[own], problem.y[own]),
        (flip, worst.other_rival[flip], worst.other_label[flip]),
        (zero, np.zeros_like(zero), np.zeros_like(zero)),
    ]


def _worst(excess: Floats, problem: Problem) -> Ints:
    """Rows whose excess is a violation, the largest ones if there are many.

    An optimum has few rows at a kink; far from it nearly all of a large table may be violated, and a quadratic
    programme of that size would not end.
    """
    rows = np.flatnonzero(excess > VIOLATION)
    most = max(_FEWEST, _TIMES * problem.classes * problem.X.shape[1])
    if len(rows) <= most:
        return rows
    return np.sort(rows[np.argpartition(-excess[rows], most)[:most]])

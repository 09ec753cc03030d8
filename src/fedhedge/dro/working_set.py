"""What the client solver keeps of the robust problem: a few pieces of each row's loss, a few cuts for phi.

The loss h_i of a row is the largest of K(K-1) affine pieces and zero, and phi(M) is the largest of many, or endlessly
many, linear functions. Few of either bind at the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from fedhedge.dro.cuts import Cuts, Pairs, next_cuts
from fedhedge.dro.loss import LabelPieces, label_pieces
from fedhedge.dro.pieces import Pieces, next_pieces
from fedhedge.dro.problem import Floats, Problem


@dataclass(frozen=True)
class WorkingSet:
    """`base` holds one piece of every row, in row order; `extra` the further pieces of the rows at a kink."""

    base: Pieces
    extra: Pieces
    cuts: Cuts


@dataclass(frozen=True)
class Point:
    """Solution of the problem reduced to a working set: the primal point and its multipliers (those of cuts times N).

    `coef` [K, P] and `lam`; weights of the extra pieces [m] and of the cuts [q]; `loose_force` [q, P], weights of the
    cuts' loose coordinates.
    """

    coef: Floats
    lam: float
    extra_weight: Floats
    cut_weight: Floats
    loose_force: Floats


class Truth(NamedTuple):
    """The whole problem at a model: worst pieces of every row, and all pairs of classes."""

    pieces: LabelPieces
    pairs: Pairs


def evaluate(coef: Floats, problem: Problem) -> Truth:
    """Worst pieces of every row and norm of every pair at a model."""
    return Truth(label_pieces(coef, problem.X, problem.y), Pairs.of(coef, problem.norm))


def next_set(problem: Problem, current: WorkingSet, point: Point, truth: Truth | None, trim: bool) -> WorkingSet:
    """Add what the working set is missing in the `truth` at the point, if given; `trim` drops what is not active."""
    pieces, pairs = truth or (None, None)
    base, extra = next_pieces(
        problem, current.base, current.extra, point.extra_weight, point.coef, point.lam, pieces, trim
    )
    cuts = next_cuts(problem, current.cuts, point.cut_weight, point.loose_force, point.coef, point.lam, pairs, trim)
    return WorkingSet(base, extra, cuts)

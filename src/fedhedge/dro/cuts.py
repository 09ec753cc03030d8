"""Cuts that stand for lam >= phi(M), and which of them the client solver keeps.

||d||_* is the largest d.u over directions u of unit norm. Its kinks differ by norm, and so does what a cut holds:
- l1 (dual linf): corners +-e_p, one cut for each that binds;
- l2: one direction that follows d, with the curvature (I - u u^T)/||d|| of the norm; several near d = 0;
- linf (dual l1): one sign vector a pair, with its coordinates near zero left loose: sum of s_p d_p and of |d_p|. The
  weight of a loose coordinate lies between plus and minus the cut's; only where it is tied to that is this imposed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedhedge.dro.norms import dual_norm, steepest_direction
from fedhedge.dro.problem import NEAR, VIOLATION, WEIGHT, Floats, Ints, Problem

# Euclidean cuts of one pair at a larger cosine than this are one cut.
_SAME_DIRECTION = 0.99
# A loose coordinate is untied when its force is below this share of its limit.
_FAR = 0.5


class Cuts(NamedTuple):
    """Cuts lam >= u.d + sum over loose p of |d_p| with d = m_first - m_second.

    `first`, `second` [q]; `direction` [q, P], zero at loose coordinates; `curvature` [q], of Euclidean cuts; `weight`
    [q], what the cut carried in the last solution; `loose`, `tied` [q, P].
    """

    first: Ints
    second: Ints
    direction: Floats
    curvature: Floats
    weight: Floats
    loose: NDArray[np.bool_]
    tied: NDArray[np.bool_]

    def signs(self, classes: int) -> Floats:
        """e_first - e_second, shape [q, K]."""
        identity = np.eye(classes)
        signs: Floats = identity[self.first] - identity[self.second]
        return signs

    def differences(self, coef: Floats) -> Floats:
        """m_first - m_second, shape [q, P]."""
        return coef[self.first] - coef[self.second]


class Pairs(NamedTuple):
    """All pairs of classes first < second with the differences of their rows and the dual norms of these."""

    first: Ints
    second: Ints
    differences: Floats
    norms: Floats

    @classmethod
    def of(cls, coef: Floats, norm: str) -> Pairs:
        """The pairs of a model."""
        first, second = np.triu_indices(len(coef), 1)
        differences = coef[first] - coef[second]
        return cls(first, second, differences, dual_norm(norm, differences))

    def positions(self, cuts: Cuts) -> Ints:
        """Position of each cut's pair."""
        classes = int(self.second.max()) + 1
        return np.searchsorted(self.first * classes + self.second, cuts.first * classes + cuts.second)


def steepest_cuts(norm: str, pairs: Pairs, chosen: Ints, curvature: Floats, near: float = NEAR) -> Cuts:
    """The steepest cut of each chosen pair; with norm linf, coordinates within `near` of zero are loose."""
    differences = pairs.differences[chosen]
    loose = (np.abs(differences) <= near) & (norm == "linf")
    direction = np.where(loose, 0.0, steepest_direction(norm, differences))
    return Cuts(pairs.first[chosen], pairs.second[chosen], direction, curvature, np.zeros(len(chosen)), loose, loose)


def next_cuts(
    problem: Problem,
    cuts: Cuts,
    weight: Floats,
    force: Floats,
    coef: Floats,
    lam: float,
    pairs: Pairs | None,
    trim: bool,
) -> Cuts:
    """The cuts with those that are missing among the `pairs` at (M, lam), if these are given.

    `trim` drops cuts that are not active there. `weight` [q] is each cut's weight, `force` [q, P] the weights of its
    loose coordinates, between -weight and weight.
    """
    differences = cuts.differences(coef)
    reach = (cuts.direction * differences).sum(1) + (np.abs(differences) * cuts.loose).sum(1)
    active = (weight > WEIGHT) | (reach > lam - NEAR) | (not trim)
    cuts = cuts._replace(weight=weight)
    if problem.norm == "linf":
        cuts = _reset_loose(cuts, force, differences, trim)
    # At radius 0 the multiplier costs nothing, and phi does not bind.
    if pairs is None or problem.radius == 0.0:
        return Cuts(*(column[active] for column in cuts))
    missing = pairs.norms > lam + VIOLATION
    position = pairs.positions(cuts)
    curvature = np.zeros(len(missing))
    if problem.norm == "l2":
        # The direction follows the model, and one cut a pair is enough, until the pair is about to collapse to zero,
        # where several directions share the weight.
        total = np.bincount(position, weight, minlength=len(missing))
        missing |= (total > WEIGHT) & (pairs.norms > 0.0)
        active &= ~missing[position] | (reach < _SAME_DIRECTION * pairs.norms[position])
        curvature = total / np.maximum(pairs.norms, 1e-300)
        cuts = cuts._replace(curvature=np.zeros(len(weight)))
    elif problem.norm == "linf":
        missing[position[active]] = False
    new = np.flatnonzero(missing)
    added = steepest_cuts(problem.norm, pairs, new, curvature[new])
    return Cuts(*(np.concatenate([old[active], fresh]) for old, fresh in zip(cuts, added, strict=True)))


def _reset_loose(cuts: Cuts, force: Floats, differences: Floats, trim: bool) -> Cuts:
    """Loosen coordinates that went against their sign, and tie those whose force is at its limit.

    `trim` fixes the sign of coordinates that left zero at full force, and unties those far from their limit.
    """
    limit = cuts.weight[:, None]
    full = np.abs(force) >= limit * (1.0 - NEAR)
    fixed = cuts.loose & full & (np.abs(differences) > NEAR) & trim
    crossed = ~cuts.loose & (cuts.direction * differences < -VIOLATION)
    direction = np.where(fixed, np.sign(differences), np.where(crossed, 0.0, cuts.direction))
    loose = (cuts.loose & ~fixed) | crossed
    far = (np.abs(force) < _FAR * limit) & trim
    tied = loose & (full | crossed | (cuts.tied & ~far))
    return cuts._replace(direction=direction, loose=loose, tied=tied)

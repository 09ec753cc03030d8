"""Feature bounds estimated from the rows, at a price: noisy histograms within wide ranges that are declared."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedhedge import checks
from fedhedge.privacy.budget import Privacy
from fedhedge.privacy.gaussian import gaussian_epsilon, gaussian_mu

FloatArray = NDArray[np.float64]
# A bin counts as held when its noisy count is this many deviations above 0.
_DEVIATIONS = 4.0


@dataclass(frozen=True)
class EstimatedBounds:
    """Feature bounds for a private method that are estimated with a part of its budget.

    Each site releases, once, a histogram of every feature over `bins` equal bins of the outer range, with Gaussian
    noise; the bounds of a feature are the outer ends of the first and the last bin whose count, over all sites, stands
    four deviations out of the noise. Values beyond them are clipped afterwards. Where no bin stands out the outer
    range stays.

    outer: ranges that are known without looking at the rows, in any form that `feature_bounds` takes as declared; wide
    ones cost resolution and no privacy. share: part of the budget's mu^2 spent here, in (0, 1). bins: 2 or more.
    Raises InvalidInput.
    """

    outer: Any
    share: float = 0.2
    bins: int = 32

    def __post_init__(self) -> None:
        if self.outer is None or isinstance(self.outer, str | EstimatedBounds):
            raise checks.InvalidInput("outer", self.outer, "ranges known without looking at the rows: (low, high), ...")
        checks.number("share", self.share, above=0.0, below=1.0)
        checks.integer("bins", self.bins, low=2)

    def mu(self, privacy: Privacy) -> float:
        """mu of the histograms of one site: sqrt(share) of that of the whole budget."""
        return math.sqrt(self.share) * gaussian_mu(privacy.epsilon, privacy.delta)

    def remaining(self, privacy: Privacy) -> Privacy:
        """What is left for the training: mu^2 adds up, so that sqrt(1 - share) mu is.

        Raises InvalidInput for a budget per round, which says nothing of what comes before the first one.
        """
        if privacy.per != "total":
            hint = "histograms are released before the first round"
            raise checks.InvalidInput("privacy.per", privacy.per, '"total" where bounds are estimated', hint)
        left = math.sqrt(1.0 - self.share) * gaussian_mu(privacy.epsilon, privacy.delta)
        return Privacy(gaussian_epsilon(privacy.delta, left), privacy.delta)


def histogram_sensitivity(features: int) -> float:
    """l2 sensitivity of the histograms of P features of one table, all counts as one vector: sqrt(2 P).

    Proof. Replacing one row lowers one count of each feature's histogram by one and raises another, or changes nothing:
    a distance of sqrt(2) at most for each of P features, whose histograms have no entry in common.
    """
    return math.sqrt(2.0 * checks.integer("features", features, low=1))


def histograms(X: FloatArray, low: FloatArray, high: FloatArray, bins: int) -> FloatArray:
    """Counts of the rows X [n, P] in `bins` equal bins of each [low, high], float[P, bins]; ends take all beyond."""
    place = np.clip(np.floor((X - low) / (high - low) * bins), 0, bins - 1).astype(int)
    return np.stack([np.bincount(column, minlength=bins) for column in place.T]).astype(np.float64)


def held_range(counts: FloatArray, deviation: float) -> NDArray[np.int64]:
    """First held bin and one past the last, int64[P, 2], of noisy counts [P, B] whose noise has this deviation.

    (0, B) where no bin is held.
    """
    held = counts > _DEVIATIONS * deviation
    bins = counts.shape[1]
    first, last = held.argmax(axis=1), bins - held[:, ::-1].argmax(axis=1)
    none = ~held.any(axis=1)
    return np.column_stack([np.where(none, 0, first), np.where(none, bins, last)])

"""Feature bounds estimated from the rows, at a price: noisy histograms within wide ranges that are declared."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
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
_MOST_BINS = 100_000


@dataclass(frozen=True)
class EstimatedBounds:
    """Feature bounds for a private method that are estimated with a part of its budget.

    Each site releases, once, a histogram of every feature over `bins` equal bins of the outer range, with Gaussian
    noise; the bounds of a feature are the outer ends of the first and the last bin whose count, over all sites, stands
    four deviations out of the noise. Values beyond them are clipped afterwards. Where no bin stands out the outer
    range stays.

    outer: ranges that are known without looking at the rows, in any form that `feature_bounds` takes as declared; wide
    ones cost resolution and no privacy. share: part of the budget's mu^2 spent here, in (0, 1). bins: 2 to 100,000.
    Raises InvalidInput.
    """

    outer: Any
    share: float = 0.2
    bins: int = 32

    def __post_init__(self) -> None:
        if isinstance(self.outer, str) or not isinstance(self.outer, Iterable):
            raise checks.InvalidInput("outer", self.outer, "ranges known without looking at the rows: (low, high), ...")
        checks.number("share", self.share, above=0.0, below=1.0)
        checks.integer("bins", self.bins, low=2, high=_MOST_BINS)
        self._check_outer()

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
        epsilon = gaussian_epsilon(privacy.delta, left)
        if epsilon == 0:
            raise checks.InvalidInput("share", self.share, "a share that leaves some of the budget for the training")
        return Privacy(epsilon, privacy.delta)

    def _check_outer(self) -> None:
        """Refuse ranges of no use whatever the features are, before any row is read."""
        if isinstance(self.outer, Mapping):
            ranges = {f"outer.{name}": pair for name, pair in self.outer.items()}
        elif all(isinstance(entry, numbers.Real) for entry in self.outer):
            ranges = {"outer": self.outer}
        else:
            ranges = {f"outer[{feature}]": pair for feature, pair in enumerate(self.outer)}
        for name, pair in ranges.items():
            self._check_range(name, pair)

    def _check_range(self, name: str, pair: Any) -> None:
        allowed = "a pair (low, high) of finite numbers, low < high"
        try:
            low, high = (checks.number(name, end) for end in pair)
        except (TypeError, ValueError):
            raise checks.InvalidInput(name, pair, allowed) from None
        if not low < high:
            raise checks.InvalidInput(name, pair, allowed)
        width = (high - low) / self.bins
        # The last bin of a range narrow for its place, such as (1e16, 1e16 + 2), would end where it starts.
        if not math.isfinite(width) or not (low < low + width and high - width < high):
            raise checks.InvalidInput(name, pair, f"a range that doubles can divide into {self.bins} bins")


def histogram_sensitivity(features: int) -> float:
    """l2 sensitivity of the histograms of P features of one table, all counts as one vector: sqrt(2 P).

    Proof. Replacing one row lowers one count of each feature's histogram by one and raises another, or changes nothing:
    a distance of sqrt(2) at most for each of P features, whose histograms have no entry in common.
    """
    return math.sqrt(2.0 * checks.integer("features", features, low=1))


def histograms(X: FloatArray, low: FloatArray, high: FloatArray, bins: int) -> FloatArray:
    """Counts of the rows X [n, P] in `bins` equal bins of each [low, high], float[P, bins]; ends take all beyond."""
    # Clipped first: the difference of far values may overflow.
    share = (np.clip(X, low, high) - low) / (high - low)
    place = np.minimum(np.floor(share * bins), bins - 1).astype(int)
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


def crowded_ends(counts: FloatArray, deviation: float) -> NDArray[np.bool_]:
    """Whether an end bin stands, beyond the noise, above twice the bin beside it, bool[P], for counts [P, B], B >= 3.

    The end bins take all values beyond the range; a distribution that goes on smoothly to the end of the range does
    not do this.
    """
    if counts.shape[1] < 3:
        return np.zeros(len(counts), bool)
    above = counts[:, [0, -1]] - 2 * counts[:, [1, -2]]
    # The difference has 1 + 2^2 times the variance of a count.
    crowded: NDArray[np.bool_] = np.any(above > _DEVIATIONS * math.sqrt(5.0) * deviation, axis=1)
    return crowded

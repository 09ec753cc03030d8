"""Bounds of the features (declared, estimated or taken from the rows), and the map to [-1, 1] that follows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedhedge import checks
from fedhedge.checks import InvalidInput
from fedhedge.privacy import EstimatedBounds, Privacy, Release, SeededNoise, histogram_sensitivity
from fedhedge.privacy.bounds import held_range, histograms
from fedhedge.privacy.statement import Bounds as Origin

FloatArray = NDArray[np.float64]
FROM_DATA = "data"
ALLOWED = (
    "a pair (low, high) for all features, a list with one pair for each, a table of pairs by column name, or "
    f'"{FROM_DATA}"'
)


@dataclass(frozen=True, eq=False)
class Bounds:
    """Ends of every feature, float64[P] each, where they come from, and what each site released for them."""

    low: FloatArray
    high: FloatArray
    origin: Origin
    releases: tuple[Release, ...] = ()

    def __call__(self, X: FloatArray) -> FloatArray:
        """Rows with [low, high] brought to [-1, 1] and clipped there; a feature of width 0 becomes 0 within bounds."""
        # Halves first: the width of a range may overflow where its ends do not.
        center, half = self.low / 2 + self.high / 2, self.high / 2 - self.low / 2
        scaled: FloatArray = np.clip((X - center) / np.where(half > 0, half, 1.0), -1.0, 1.0)
        return scaled


def check_form(given: Any, *, private: bool) -> None:
    """Refuse what cannot be bounds whatever the features are, and no bounds where a method is private."""
    if given is None and private:
        hint = f'"{FROM_DATA}" lets the rows decide, which voids part of the guarantee'
        raise InvalidInput("feature_bounds", None, f"declared for a private method: {ALLOWED}", hint)
    if isinstance(given, str) and given != FROM_DATA:
        raise InvalidInput("feature_bounds", given, ALLOWED)
    if isinstance(given, EstimatedBounds) and not private:
        raise InvalidInput("feature_bounds", given, ALLOWED, "this method has no budget to estimate them with")


def resolve(given: Any, X: FloatArray, names: Sequence[str] | None) -> Bounds:
    """Bounds of the features of X [n, P] with column `names`, declared or, for None and "data", the range of X.

    Raises InvalidInput naming the feature.
    """
    if given is None or isinstance(given, str):
        return Bounds(X.min(axis=0), X.max(axis=0), "data")
    if isinstance(given, Mapping):
        given = _in_order(given, names)
    try:
        pairs = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("feature_bounds", given, ALLOWED) from None
    features = X.shape[1]
    if pairs.shape == (2,):
        pairs = np.tile(pairs, (features, 1))
    if pairs.shape != (features, 2):
        hint = f"there are {features} features" if pairs.ndim == 2 else ""
        raise InvalidInput("feature_bounds", given, ALLOWED, hint)
    bad = ~(np.isfinite(pairs).all(axis=1) & (pairs[:, 0] < pairs[:, 1]))
    if bad.any():
        first = int(bad.argmax())
        where = names[first] if names is not None else first
        raise InvalidInput(f"feature_bounds of {where}", tuple(pairs[first].tolist()), "finite numbers, low < high")
    return Bounds(pairs[:, 0], pairs[:, 1], "declared")


def estimate(
    given: EstimatedBounds,
    privacy: Privacy,
    X: FloatArray,
    sites: NDArray[np.int32],
    names: Sequence[str] | None,
    seed: int,
) -> Bounds:
    """Bounds from one noisy histogram of every feature of each site; `sites` [n] are the rows' sites, 0, 1, ...

    Raises InvalidInput for outer ranges that cannot be used; warns where no bin stands out of the noise.
    """
    outer = resolve(given.outer, X, names)
    sensitivity = histogram_sensitivity(X.shape[1])
    sigma = sensitivity / given.mu(privacy)
    noise, total = SeededNoise(seed), np.zeros((X.shape[1], given.bins))
    count = int(sites.max()) + 1
    for site in range(count):
        exact = histograms(X[sites == site], outer.low, outer.high, given.bins)
        # Round 0 of the site's stream in NumPy; training draws from JAX's own.
        total += exact + noise.draw(site, 0, [sigma], [exact.shape])[0]
    ends = held_range(total, sigma * count**0.5)
    unknown = np.flatnonzero((ends == (0, given.bins)).all(axis=1))
    if len(unknown):
        which = ", ".join(str(k if names is None else names[k]) for k in unknown[:5])
        warnings.warn(
            f"the outer range stays for {len(unknown)} of {len(ends)} features ({which}): their rows fill it, or noise "
            f"of deviation {sigma * count**0.5:.3g} a bin hides them; more rows, a larger share or fewer bins help",
            stacklevel=3,
        )
    width = (outer.high - outer.low) / given.bins
    low, high = outer.low + width * ends[:, 0], outer.low + width * ends[:, 1]
    released = Release(f"histograms of the features, {given.bins} bins each", sensitivity, sigma)
    return Bounds(low, high, "estimated", (released,))


def _in_order(table: Mapping[str, Any], names: Sequence[str] | None) -> list[Any]:
    if names is None:
        raise InvalidInput("feature_bounds", "a table by column name", "a list of pairs: X has no column names")
    for name in table:
        if name not in names:
            raise InvalidInput(f"feature_bounds.{name}", table[name], "names of columns", checks.nearest(name, names))
    for name in names:
        if name not in table:
            raise InvalidInput(f"feature_bounds.{name}", None, "a pair (low, high) for every column")
    return [table[name] for name in names]

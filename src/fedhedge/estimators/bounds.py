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
from fedhedge.privacy.bounds import crowded_ends, held_range, histograms
from fedhedge.privacy.statement import Bounds as Origin

FloatArray = NDArray[np.float64]
FROM_DATA = "data"
ALLOWED = (
    "a pair (low, high) for all features, a list with one pair for each, a table of pairs by column name, or "
    f'"{FROM_DATA}"'
)


@dataclass(frozen=True, eq=False)
class Bounds:
    """Ends of every feature, float64[P] each, where they come from, and what each site released for them.

    found: what an estimate found, one line a feature.
    """

    low: FloatArray
    high: FloatArray
    origin: Origin
    releases: tuple[Release, ...] = ()
    found: tuple[str, ...] = ()

    def __call__(self, X: FloatArray) -> FloatArray:
        """Rows with [low, high] brought to [-1, 1] and clipped there; a feature of width 0 becomes 0 within bounds."""
        # Halves first: the width of a range may overflow where its ends do not.
        center, half = self.low / 2 + self.high / 2, self.high / 2 - self.low / 2
        scaled: FloatArray = np.clip((X - center) / np.where(half > 0, half, 1.0), -1.0, 1.0)
        return scaled


def check_form(given: Any, *, private: bool) -> None:
    """Refuse what cannot be bounds whatever the features are, and no bounds where a method is private."""
    if given is None and private:
        hint = (
            "fedhedge.privacy.EstimatedBounds, the table [estimated_bounds] of a file, finds them for a share of the "
            f'budget; "{FROM_DATA}" lets the rows decide, which voids part of the guarantee'
        )
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
    try:
        outer = resolve(given.outer, X, names)
    except InvalidInput as error:
        name = error.name.replace("feature_bounds", "feature_bounds.outer", 1)
        raise InvalidInput(name, error.received, error.allowed, error.hint) from None
    release = histogram_release(given, privacy, X.shape[1])
    noise, total = SeededNoise(seed), np.zeros((X.shape[1], given.bins))
    count = int(sites.max()) + 1
    for site in range(count):
        exact = histograms(X[sites == site], outer.low, outer.high, given.bins)
        # Round 0 of the site's stream in NumPy; training draws from JAX's own.
        total += exact + noise.draw(site, 0, [release.sigma], [exact.shape])[0]
    deviation = release.sigma * count**0.5
    ends = held_range(total, deviation)
    _warn(total, ends, deviation, names)
    width = (outer.high - outer.low) / given.bins
    low, high = outer.low + width * ends[:, 0], outer.low + width * ends[:, 1]
    return Bounds(low, high, "estimated", (release,), describe(given, low, high, names))


def histogram_release(given: EstimatedBounds, privacy: Privacy, features: int) -> Release:
    """What each site releases once for the bounds of P features."""
    sensitivity = histogram_sensitivity(features)
    name = f"histograms of the features, {given.bins} bins each"
    return Release(name, sensitivity, sensitivity / given.mu(privacy))


def describe(given: EstimatedBounds, low: FloatArray, high: FloatArray, names: Sequence[str] | None) -> tuple[str, ...]:
    """What was asked for and what was found: both are public, one with the settings, one by the noise."""
    outer = resolve(given.outer, np.zeros((1, len(low))), names)
    asked = f"for {given.share:.4g} of the budget's mu^2, in {given.bins} bins of the outer range"
    ranges = (
        f"{_name(k, names)}: [{low[k]:.6g}, {high[k]:.6g}] within [{outer.low[k]:.6g}, {outer.high[k]:.6g}]"
        for k in range(len(low))
    )
    return (asked, *ranges)


def _warn(counts: FloatArray, ends: NDArray[np.int64], deviation: float, names: Sequence[str] | None) -> None:
    """Say where the noisy counts, which are public, show that the outer ranges or the bins do not suit the rows."""
    bins = counts.shape[1]
    unknown = (ends == (0, bins)).all(axis=1)
    single = ends[:, 1] - ends[:, 0] == 1
    outside = crowded_ends(counts, deviation)
    complaints = (
        (
            unknown,
            f"the outer range stays for {{}}: their rows fill it, or noise of deviation {deviation:.3g} a bin hides "
            "them; more rows, a larger share or fewer bins help",
        ),
        (
            single,
            "one bin holds what can be seen of the rows of {}, which leaves little resolution within it; a narrower "
            "outer range or more bins help",
        ),
        (
            outside,
            "the end bins of the outer range are crowded for {}: values beyond the range are counted there and "
            "clipped; if there may be such, a wider outer range helps",
        ),
    )
    for which, text in complaints:
        if which.any():
            some = ", ".join(_name(k, names) for k in np.flatnonzero(which)[:5])
            warnings.warn(text.format(f"{which.sum()} of {len(which)} features ({some})"), stacklevel=4)


def _name(feature: int, names: Sequence[str] | None) -> str:
    return str(feature if names is None else names[feature])


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

"""What the owner of a site accepted, what a round would do, and whether the two agree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedhedge import checks
from fedhedge.privacy.budget import Privacy, check_delta
from fedhedge.privacy.ledger import GAUSSIAN

REPLACE_ONE_ROW = "replace one row"
RELATIONS = (REPLACE_ONE_ROW,)
# Room for rounding where a number travelled through text or was divided and multiplied back, relative.
_ROUNDING = 1e-9
Intervals = tuple[tuple[float, float], ...]


class Refused(RuntimeError):
    """A round that the site does not take part in; `reason` says why, in words for its owner."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


@dataclass(frozen=True)
class Accepted:
    """What the owner of a site's rows agreed to, for all experiments on these rows together.

    site: its name. samples: its rows, N, taken as public. budget: epsilon and delta in all, delta < 1/N. methods: names
    of the methods allowed. row_bound: L, to which rows are scaled down inside the site. least_noise: the least
    sigma / sensitivity of each release. feature_bounds: (low, high) of each feature as declared, or None where features
    are not scaled. relation: which tables are neighbours. mechanism: the kind of noise.

    Raises InvalidInput.
    """

    site: str
    samples: int
    budget: Privacy
    methods: tuple[str, ...]
    row_bound: float
    least_noise: float
    feature_bounds: Intervals | None = None
    relation: str = REPLACE_ONE_ROW
    mechanism: str = GAUSSIAN

    def __post_init__(self) -> None:
        _text("site", self.site)
        checks.instance("budget", self.budget, Privacy, "a Privacy")
        if self.budget.per != "total":
            raise checks.InvalidInput("budget.per", self.budget.per, "total", "the guard counts all experiments")
        check_delta(self.budget.delta, self.samples, self.site)
        object.__setattr__(self, "methods", _names("methods", self.methods))
        object.__setattr__(self, "row_bound", checks.number("row_bound", self.row_bound, above=0))
        object.__setattr__(self, "least_noise", checks.number("least_noise", self.least_noise, above=0))
        object.__setattr__(self, "feature_bounds", _intervals(self.feature_bounds))
        checks.one_of("relation", self.relation, RELATIONS)
        checks.one_of("mechanism", self.mechanism, (GAUSSIAN,))


@dataclass(frozen=True)
class Mechanism:
    """What the site would do in a round, as its own code works it out from the settings that it was sent.

    experiment: the fingerprint of the run. method: its name. noise: sigma / sensitivity of each release that depends on
    rows. kind, row_bound, feature_bounds, relation: see `Accepted`. Any values can be stated; `SiteGuard` judges them.

    Raises InvalidInput for what is no statement at all, such as a text for a number.
    """

    experiment: str
    method: str
    noise: tuple[float, ...]
    row_bound: float
    feature_bounds: Intervals | None = None
    relation: str = REPLACE_ONE_ROW
    kind: str = GAUSSIAN

    def __post_init__(self) -> None:
        for name in ("experiment", "method", "relation", "kind"):
            _text(name, getattr(self, name))
        object.__setattr__(self, "noise", checks.numbers_of("noise", self.noise, low=0))
        object.__setattr__(self, "row_bound", checks.number("row_bound", self.row_bound))
        object.__setattr__(self, "feature_bounds", _intervals(self.feature_bounds))

    @property
    def mu(self) -> float:
        """Gaussian-privacy parameter of the round: sqrt(sum 1 / noise_j^2), for one replaced row; inf without noise."""
        if not self.noise or min(self.noise) == 0:
            return math.inf
        return math.hypot(*(1.0 / multiplier for multiplier in self.noise))


def compare(accepted: Accepted, mechanism: Mechanism) -> None:
    """Raises Refused where a mechanism differs from what was accepted, saying in what."""
    for name, found, wanted in (
        ("noise", mechanism.kind, accepted.mechanism),
        ("neighbouring relation", mechanism.relation, accepted.relation),
        ("row bound", mechanism.row_bound, accepted.row_bound),
        ("feature bounds", mechanism.feature_bounds, accepted.feature_bounds),
    ):
        if not _same(found, wanted):
            who = f"the owner of site {accepted.site!r} accepted {_shown(wanted)}"
            raise Refused(f"the {name} would be {_shown(found)}; {who}")
    if mechanism.method not in accepted.methods:
        allowed = ", ".join(accepted.methods)
        raise Refused(f"the method {mechanism.method!r} is not one that the owner accepted: {allowed}")
    if not mechanism.noise:
        raise Refused("the method would release something without stating any noise")
    least, floor = min(mechanism.noise), accepted.least_noise
    if least < floor * (1.0 - _ROUNDING):
        raise Refused(f"the noise would be {least:.6g} times the sensitivity; the owner accepted {floor:.6g} or more")


def _same(found: object, wanted: object) -> bool:
    if isinstance(found, float) and isinstance(wanted, float):
        return math.isclose(found, wanted, rel_tol=_ROUNDING)
    if isinstance(found, tuple) and isinstance(wanted, tuple):
        return len(found) == len(wanted) and all(map(_same, found, wanted))
    return found == wanted


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if not isinstance(value, tuple):
        return f"{value:.10g}" if isinstance(value, float) else repr(value)
    pairs = [f"[{low:.10g}, {high:.10g}]" for low, high in value[:4]]
    return f"{len(value)} intervals " + ", ".join([*pairs, "..."] if len(value) > len(pairs) else pairs)


def _text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise checks.InvalidInput(name, value, "a text that is not empty")


def _names(name: str, values: object) -> tuple[str, ...]:
    if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise checks.InvalidInput(name, values, "a list of at least one name")
    for entry in values:
        _text(name, entry)
    return tuple(values)


def _intervals(bounds: object) -> Intervals | None:
    if bounds is None:
        return None
    if isinstance(bounds, str | Mapping) or not isinstance(bounds, Sequence):
        raise checks.InvalidInput("feature_bounds", bounds, "a list of pairs [low, high], or nothing")
    found = []
    for place, pair in enumerate(bounds):
        name = f"feature_bounds[{place}]"
        numbers = checks.numbers_of(name, pair)
        if len(numbers) != 2 or not numbers[0] < numbers[1]:
            raise checks.InvalidInput(name, pair, "a pair [low, high] with low < high")
        found.append((numbers[0], numbers[1]))
    return tuple(found)

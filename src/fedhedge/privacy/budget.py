"""A privacy budget as a user states it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast, get_args

from fedhedge import checks
from fedhedge.privacy.gaussian import check_delta_value

Span = Literal["total", "round"]


@dataclass(frozen=True)
class Privacy:
    """(epsilon, delta)-differential privacy of each client's table, for the whole run or for one round.

    For every two tables that differ in one replaced row, and every set S of what can be seen of the client,
    P(S | table) <= exp(epsilon) P(S | neighbour) + delta.

    epsilon: above 0, no unit. delta: in (0, 1), and below 1/n for a client of n rows (see `check_delta`).
    per: "total" for all rounds together, "round" for each round alone (the run as a whole then costs more).

    Raises InvalidInput when a setting is missing or outside its range; nothing is filled in.
    """

    # None stands for "not given", so that a partial setting gets our message and not Python's.
    epsilon: float = cast(float, None)
    delta: float = cast(float, None)
    per: Span = "total"

    def __post_init__(self) -> None:
        missing = [name for name in ("epsilon", "delta") if getattr(self, name) is None]
        if missing:
            given = {"epsilon": self.epsilon, "delta": self.delta}
            raise checks.InvalidInput(
                "privacy", given, "epsilon and delta together", f"{' and '.join(missing)} missing"
            )
        object.__setattr__(self, "epsilon", checks.number("epsilon", self.epsilon, above=0))
        object.__setattr__(self, "delta", check_delta_value(self.delta))
        checks.one_of("per", self.per, get_args(Span))

    def __str__(self) -> str:
        span = "over the whole run" if self.per == "total" else "in each round"
        return f"epsilon = {self.epsilon:g} at delta = {self.delta:g} {span}"


def check_delta(delta: float, samples: int, site: str) -> float:
    """delta, when it is below 1 / samples for this site; the unit is one row of the site's table.

    From 1/n on, publishing one row drawn at random would count as private.
    Raises InvalidInput naming the site.
    """
    delta = check_delta_value(delta)
    samples = checks.integer(f"samples at site {site!r}", samples, low=1)
    if delta * samples >= 1:
        raise checks.InvalidInput(
            f"delta at site {site!r}",
            delta,
            f"a number below 1/n = {1 / samples:.3g}",
            f"the site has n = {samples} rows; from 1/n on, publishing one of them at random would count as private",
        )
    return delta

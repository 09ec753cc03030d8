"""What a site can say about the privacy of its rows after (or before) a run, and what it cannot."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import fill
from typing import Any, Literal, get_args

from fedhedge import checks
from fedhedge.privacy.budget import Privacy, check_delta
from fedhedge.privacy.composition import moments_epsilon, run_mu
from fedhedge.privacy.gaussian import classic_epsilon, gaussian_epsilon

Bounds = Literal["declared", "estimated", "data"]

RELATION = "two tables of this site are neighbours when one row (features and label) is replaced by any other row"
UNIT = "one row of this site; a person with k rows here has k times the mu stated, and rows at other sites add to it"
NOT_COVERED = (
    "the number of rows of the site, which the noise and the averaging use as public",
    "which sites exist, how the rows came to be split among them, and which rounds a site took part in",
    "settings that were chosen by looking at private data (a search over hyper-parameters or seeds), unless each "
    "try is accounted",
    "preprocessing that was fitted on the rows before they came to the method (a scaler in a pipeline, imputed gaps, "
    "selected features)",
    "anything else published from the same table, unless it is in the same ledger",
)
QUOTE = (
    "the first epsilon above, which is exact for the whole run; the paper's moments formula bounds that same epsilon "
    "from above by a simpler argument and is therefore larger, and one round alone is not all that was released"
)
MU = "all releases together tell two neighbours apart as well as one draw tells N(0, 1) from N(mu, 1)"
_BOUNDS_NOTES = {
    "declared": "declared by the site, independent of its rows; rows outside are clipped",
    "estimated": "estimated with noise, which is counted among the releases here",
    "data": "TAKEN FROM THE DATA. One outlier then moves every scaled row, so the sensitivity, and "
    "with it every epsilon stated here, hold only between tables that have the same bounds",
}
_SEEDED = (
    "the noise comes from a seed (simulation): it hides nothing from whoever knows the seed, nor from floating-point "
    "attacks; a seed drawn from the system's entropy is written to no file"
)


@dataclass(frozen=True)
class Release:
    """A Gaussian release: name, l2 sensitivity over one replaced row, and noise sigma, both in the release's unit."""

    name: str
    sensitivity: float
    sigma: float

    def __post_init__(self) -> None:
        checks.number(f"{self.name}.sensitivity", self.sensitivity, low=0)
        if self.sensitivity > 0:
            checks.number(f"{self.name}.sigma", self.sigma, above=0)

    @property
    def mu(self) -> float:
        """sensitivity / sigma; 0 for a release that depends on no row."""
        return self.sensitivity / self.sigma if self.sensitivity > 0 else 0.0


@dataclass(frozen=True)
class Statement:
    """The privacy statement of one site, for one replaced row of its table.

    site: its name. samples: its rows. rounds: those in which it released something. each_round: the releases of every
    round. once: releases made once (estimated feature bounds). requested: the budget asked for. delta: where epsilon is
    stated. bounds: where the feature bounds come from. bounds_found: lines on what an estimate of them found.
    secure_noise: `NoiseSource.secure`. also_not_covered: what the method adds to the list, such as a step size scaled
    with the norm of a model solved on private data.

    Raises InvalidInput when delta >= 1/samples or an entry is outside its range.
    """

    site: str
    samples: int
    rounds: int
    each_round: tuple[Release, ...]
    delta: float
    requested: Privacy | None = None
    once: tuple[Release, ...] = ()
    bounds: Bounds = "declared"
    bounds_found: tuple[str, ...] = ()
    secure_noise: bool = False
    also_not_covered: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_delta(self.delta, self.samples, self.site)
        checks.integer("rounds", self.rounds, low=0)
        checks.one_of("bounds", self.bounds, get_args(Bounds))
        if self.bounds == "estimated" and not self.once:
            raise checks.InvalidInput("once", self.once, "the releases with which the bounds were estimated")

    @property
    def mu(self) -> float:
        """Gaussian-privacy parameter of everything released: sqrt(rounds sum mu_j^2 + sum mu_once^2)."""
        return math.hypot(run_mu(self.rounds, _mus(self.each_round)), run_mu(1, _mus(self.once)))

    @property
    def epsilon(self) -> float:
        """Exact epsilon at `delta` of everything released, by Gaussian composition."""
        return gaussian_epsilon(self.delta, self.mu)

    @property
    def epsilon_paper(self) -> float:
        """Epsilon at `delta` by the paper's moments-accountant formula; never below the exact one."""
        return moments_epsilon(self.delta, self.mu)

    @property
    def epsilon_round(self) -> float:
        """Exact epsilon at `delta` of one round alone."""
        return gaussian_epsilon(self.delta, run_mu(1, _mus(self.each_round)))

    @property
    def epsilon_round_paper(self) -> float | None:
        """Epsilon of one round alone by the paper's classic formula, or None where it reaches 1 and proves nothing."""
        return classic_epsilon(self.delta, run_mu(1, _mus(self.each_round)))

    @property
    def reason(self) -> str | None:
        """Why `epsilon_round_paper` is None, or None."""
        if self.epsilon_round_paper is not None:
            return None
        return "the classic Gaussian formula is proven for epsilon below 1 only, and would give 1 or more here"

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What the epsilon stated does not speak of."""
        bounds = ("the feature bounds, which were taken from the data",) if self.bounds == "data" else ()
        seeded = () if self.secure_noise else (_SEEDED,)
        return (*bounds, *NOT_COVERED, *self.also_not_covered, *seeded)

    def as_dict(self) -> dict[str, Any]:
        """Everything the statement says, as JSON-able values."""
        return about(self.site, self.samples) | {
            "rounds": self.rounds,
            "each_round": [_as_dict(release) for release in self.each_round],
            "once": [_as_dict(release) for release in self.once],
            "requested": None
            if self.requested is None
            else {"epsilon": self.requested.epsilon, "delta": self.requested.delta, "per": self.requested.per},
            "delta": self.delta,
            "mu": self.mu,
            "epsilon": self.epsilon,
            "epsilon_paper": self.epsilon_paper,
            "epsilon_round": self.epsilon_round,
            "epsilon_round_paper": self.epsilon_round_paper,
            "epsilon_round_paper_reason": self.reason,
            "bounds": self.bounds,
            "bounds_note": _BOUNDS_NOTES[self.bounds],
            "bounds_found": list(self.bounds_found),
            "secure_noise": self.secure_noise,
            "not_covered": list(self.not_covered),
        }

    def __str__(self) -> str:
        at_delta = f"at delta = {self.delta:g}" + (
            " (if the feature bounds are public)" if self.bounds == "data" else ""
        )
        classic = "none for one round by the paper's classic formula: " + str(self.reason)
        if self.epsilon_round_paper is not None:
            classic = f"{self.epsilon_round_paper:.4g} {at_delta}, one round alone, the paper's classic formula"
        items = [
            *(("each round", _describe(release)) for release in self.each_round),
            *(("once", _describe(release)) for release in self.once),
            ("rounds", str(self.rounds)),
            ("epsilon", f"{self.epsilon:.4g} {at_delta}, whole run, exact (mu = {self.mu:.4g})"),
            ("", f"{self.epsilon_paper:.4g} {at_delta}, whole run, the paper's moments formula"),
            ("", f"{self.epsilon_round:.4g} {at_delta}, one round alone, exact"),
            ("", classic),
            ("to quote", QUOTE),
            ("mu", MU),
            ("requested", "nothing" if self.requested is None else str(self.requested)),
            ("feature bounds", _BOUNDS_NOTES[self.bounds]),
            *(("", line) for line in self.bounds_found),
        ]
        return text(f"Privacy statement of site {self.site} ({self.samples} rows)", items, self.not_covered)


def about(site: str, samples: int) -> dict[str, Any]:
    """What every statement begins with as JSON-able values: whose rows, and what is protected."""
    return {"site": site, "samples": samples, "neighbours": RELATION, "unit": UNIT, "mechanism": "gaussian"}


def text(heading: str, items: Iterable[tuple[str, str]], not_covered: Iterable[str]) -> str:
    """A statement in words: what is protected, then (name, text) of its own items, then what is not covered."""
    lines = [_item(*item) for item in (("neighbours", RELATION), ("unit", UNIT), *items)]
    return "\n".join([heading, *lines, "  not covered:", *(_wrap(f"  - {entry}", 4) for entry in not_covered)])


def _mus(releases: Iterable[Release]) -> list[float]:
    return [release.mu for release in releases]


def _describe(release: Release) -> str:
    if release.sensitivity == 0:
        return f"{release.name}: depends on no row, no noise needed"
    return (
        f"{release.name}: Gaussian, l2 sensitivity {release.sensitivity:.4g}, "
        f"noise sigma {release.sigma:.4g} (sigma/sensitivity = {release.sigma / release.sensitivity:.4g})"
    )


def _as_dict(release: Release) -> dict[str, Any]:
    return {
        "name": release.name,
        "sensitivity": release.sensitivity,
        "sigma": release.sigma,
        "mu": release.mu,
    }


def _item(name: str, text: str) -> str:
    label = f"  {name + ':' if name else '':<16}"
    return _wrap(label + text, len(label))


def _wrap(text: str, indent: int) -> str:
    return fill(text, width=100, subsequent_indent=" " * indent, break_long_words=False)

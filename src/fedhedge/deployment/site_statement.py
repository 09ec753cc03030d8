"""What a site can say, at any time, of all that was released from its rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fedhedge.privacy.budget import Privacy
from fedhedge.privacy.gaussian import gaussian_epsilon, gaussian_mu
from fedhedge.privacy.ledger import TORN, Event
from fedhedge.privacy.statement import NOT_COVERED, about, text


@dataclass(frozen=True)
class SiteStatement:
    """The spend of one site over all experiments, for one replaced row of its table.

    site, samples: whose rows, and how many. budget: what the owner accepted in all. events: what the ledger holds.
    also_not_covered: what the site adds to the list of what epsilon does not speak of.
    """

    site: str
    samples: int
    budget: Privacy
    events: tuple[Event, ...]
    also_not_covered: tuple[str, ...] = ()

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What the epsilon stated does not speak of."""
        return (*NOT_COVERED, *self.also_not_covered)

    @property
    def mu(self) -> float:
        """Gaussian-privacy parameter of everything charged: sqrt(sum mu_i^2)."""
        return _together(self.events)

    @property
    def epsilon(self) -> float:
        """Exact epsilon of everything charged, at the budget's delta."""
        return gaussian_epsilon(self.budget.delta, self.mu)

    @property
    def mu_left(self) -> float:
        """The largest mu of one more release: sqrt(mu_budget^2 - mu^2)."""
        allowed = gaussian_mu(self.budget.epsilon, self.budget.delta)
        return math.sqrt(max(0.0, allowed**2 - self.mu**2))

    @property
    def experiments(self) -> dict[str, tuple[int, float]]:
        """(number of charges, epsilon if it were alone) of each experiment; "torn" counts lines that a crash cut."""
        groups: dict[str, list[Event]] = {}
        for event in self.events:
            groups.setdefault(TORN if event.kind == TORN else event.run, []).append(event)
        delta = self.budget.delta
        return {name: (len(found), gaussian_epsilon(delta, _together(found))) for name, found in groups.items()}

    def as_dict(self) -> dict[str, Any]:
        """Everything the statement says, as JSON-able values."""
        return about(self.site, self.samples) | {
            "budget": {"epsilon": self.budget.epsilon, "delta": self.budget.delta},
            "mu": self.mu,
            "epsilon": self.epsilon,
            "mu_left": self.mu_left,
            "charges": len(self.events),
            "experiments": {name: {"charges": n, "epsilon": e} for name, (n, e) in self.experiments.items()},
            "not_covered": list(self.not_covered),
        }

    def __str__(self) -> str:
        budget = self.budget
        spent = f"epsilon = {self.epsilon:.4g} of {budget.epsilon:g} at delta = {budget.delta:g}, exact"
        items = [
            ("spent", f"{spent} (mu = {self.mu:.4g}), in {len(self.events)} charges"),
            ("left", f"one more release of mu up to {self.mu_left:.4g}"),
            *(
                ("experiment", f"{name}: {charges} charges, epsilon = {epsilon:.4g} alone")
                for name, (charges, epsilon) in self.experiments.items()
            ),
        ]
        heading = f"Privacy spent by site {self.site} ({self.samples} rows), all experiments together"
        return text(heading, items, self.not_covered)


def _together(events: Iterable[Event]) -> float:
    return math.hypot(*(event.mu for event in events))

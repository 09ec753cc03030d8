"""What a site's owner accepted, against what the federation would do in each round."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from fedhedge.algorithms.private import Private
from fedhedge.checks import InvalidInput
from fedhedge.config.tables import below
from fedhedge.deployment.federation import Federation
from fedhedge.deployment.site_guard import Accepted, Mechanism, Refused, SiteGuard
from fedhedge.deployment.site_terms import compare
from fedhedge.estimators.statements import releases


class NoBudget:
    """The guard of a site whose owner said that methods without privacy may run on its rows."""

    def authorise(self, number: int, experiment: str) -> None:
        """Everything is accepted."""

    def release(self, number: int, experiment: str, upload: bytes) -> None:
        """Nothing is charged."""

    def statement(self) -> dict[str, Any] | None:
        """There is nothing to state."""
        return None

    def close(self) -> None:
        """Nothing is held."""


class Budget:
    """The site's guard, asked about the mechanism that the federation's settings make of each round.

    rows: behind each release. also_not_covered: what the statement adds to its list.
    """

    def __init__(
        self, guard: SiteGuard, federation: Federation, rows: int, also_not_covered: tuple[str, ...] = ()
    ) -> None:
        self._guard, self._also = guard, also_not_covered
        self._of_round = mechanism(federation, rows)

    def authorise(self, number: int, experiment: str) -> None:
        """Raises Refused unless the owner accepted such a round and the budget covers it."""
        self._guard.authorise(number, self._mechanism(experiment))

    def release(self, number: int, experiment: str, upload: bytes) -> None:
        """Charge an upload before it leaves, once however often the same bytes are sent; raises Refused."""
        self._guard.record(number, self._mechanism(experiment), upload)

    def statement(self) -> dict[str, Any] | None:
        """What was spent and what is left."""
        found = self._guard.statement(self._also)
        return found.as_dict() | {"text": str(found)}

    def close(self) -> None:
        """Let another process open the ledger."""
        self._guard.close()

    def _mechanism(self, experiment: str) -> Mechanism:
        return dataclasses.replace(self._of_round, experiment=experiment)


def open_budget(
    folder: Path,
    accepted: dict[str, Any],
    federation: Federation,
    site: str,
    rows: int,
    share: tuple[str, ...],
    anchor: Path | None = None,
) -> Budget | NoBudget:
    """The guard that the owner's table [accept] asks for; its ledger has been begun by `begin_budget`.

    accepted: no_privacy = true, or the keys of `Accepted` that the owner decides. rows: of training. share: splits
    whose metrics leave the site without noise. anchor: see `SiteGuard.open`. Raises InvalidInput, Refused, LedgerBusy.
    """
    terms = _terms(accepted, federation, site, rows)
    if terms is None:
        return NoBudget()
    guard = SiteGuard.open(folder, terms, anchor=anchor)
    also = tuple(
        f"mean loss and accuracy on the split {split}, which this site shares without noise" for split in share
    )
    return Budget(guard, federation, rows, also)


def begin_budget(
    folder: Path, accepted: dict[str, Any], federation: Federation, site: str, rows: int, anchor: Path | None = None
) -> None:
    """Begin the ledger of a site's table, with nothing spent: once in the life of the table, by its owner.

    Raises InvalidInput where there is no budget, or a ledger, an anchor or an experiment is there already; LedgerBusy.
    """
    terms = _terms(accepted, federation, site, rows)
    if terms is None:
        raise InvalidInput("accept", accepted, "a budget: a site without one keeps no ledger")
    found = sorted(path.name for path in folder.glob("state-*"))
    if found:
        hint = f"{found[0]} shows that something left the site: a ledger that is lost has to come back from a copy"
        raise InvalidInput("state", str(folder), "a folder in which no experiment has been", hint)
    SiteGuard.open(folder, terms, new=True, anchor=anchor).close()


def _terms(accepted: dict[str, Any], federation: Federation, site: str, rows: int) -> Accepted | None:
    """What the owner accepted, None for methods without privacy."""
    if accepted.get("no_privacy"):
        return None
    if not is_private(federation):
        allowed = f"no_privacy = true: {federation.algorithm.name} adds no noise to what leaves the site"
        raise InvalidInput("accept", accepted, allowed)
    with below("accept"):
        terms = Accepted(site=site, samples=rows, feature_bounds=declared(federation), **accepted)
    # What no round could ever be let through for shows before the first one.
    compare(terms, mechanism(federation, rows))
    return terms


def mechanism(federation: Federation, rows: int) -> Mechanism:
    """What a round of the federation does to the rows of a site, whose number of training rows is given."""
    method = federation.algorithm
    bound = float(getattr(method, "row_bound", np.inf))
    return Mechanism("none yet", method.name, multipliers(method, rows), bound, declared(federation))


def is_private(federation: Federation) -> bool:
    """Whether the federation's method adds noise."""
    return isinstance(federation.algorithm, Private) and federation.algorithm.noise > 0.0


def declared(federation: Federation) -> tuple[tuple[float, float], ...] | None:
    """The feature bounds that the federation declares, in the order of the features."""
    bounds = federation.terms.features
    return tuple((low, high) for low, high in bounds.values()) if isinstance(bounds, dict) else None


def multipliers(algorithm: Any, rows: int) -> tuple[float, ...]:
    """sigma / sensitivity of each release of a round that depends on rows."""
    return tuple(found.sigma / found.sensitivity for found in releases(algorithm, rows) if found.sensitivity > 0.0)


__all__ = ["Budget", "NoBudget", "Refused", "begin_budget", "is_private", "multipliers", "open_budget"]

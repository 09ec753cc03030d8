"""A client's own account of what was released about its table; it refuses what its budget does not cover."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from fedhedge import checks
from fedhedge.privacy.budget import Privacy
from fedhedge.privacy.gaussian import gaussian_epsilon, gaussian_mu
from fedhedge.privacy.ledger_file import LedgerDamaged, LedgerFile

GAUSSIAN = "gaussian"
TORN = "torn"
# Room for rounding, relative in mu^2: T rounds calibrated to a budget sum to it only up to rounding.
_ROUNDING = 1e-9
# The mu of a line that was cut short, when the cut came after it.
_MU = re.compile(r'"mu":([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)[,}]')


@dataclass(frozen=True)
class Event:
    """One release (or one round's releases together) of a client.

    mu: sensitivity / sigma of the Gaussian noise, no unit; sensitivity over one replaced row of the client's table.
    round: the round in which it is sent. run: the fingerprint of the run. kind: the mechanism, "gaussian"; the ledger
    itself writes "torn" for an entry that a crash cut short. release: the digest of what is sent, where it is known.
    """

    mu: float
    round: int | None = None
    run: str = ""
    kind: str = GAUSSIAN
    release: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", checks.number("event.mu", self.mu, low=0))
        if self.round is not None:
            checks.integer("event.round", self.round, low=0)
        for name in ("run", "release"):
            if not isinstance(getattr(self, name), str):
                raise checks.InvalidInput(f"event.{name}", getattr(self, name), "a text")


class BudgetExceeded(RuntimeError):
    """A release that the client's budget does not cover.

    client: its name. spent: epsilon so far. asked: epsilon with the release. budget: what the client accepted. All at
    the budget's delta, for one replaced row.
    """

    def __init__(self, client: str, spent: float, asked: float, budget: Privacy) -> None:
        self.client = client
        self.spent = spent
        self.asked = asked
        self.budget = budget
        super().__init__(client, spent, asked, budget)

    def __str__(self) -> str:
        return (
            f"client {self.client!r}: the release would raise the spend from epsilon = {self.spent:.6g} to "
            f"{self.asked:.6g} at delta = {self.budget.delta:g}; the budget is {self.budget}"
        )


class Ledger:
    """What one client has spent of its privacy budget, and the guard of the rest.

    The unit is one replaced row of the client's table. Gaussian events compose to mu^2 = sum mu_i^2, and refusing what
    would pass a threshold keeps to it, also when each mu depends on what was seen before (Smith and Thakurta 2022,
    arXiv 2210.17520). The spend is epsilon at the budget's delta by `gaussian_epsilon`.

    path: a file that holds every event of this client's table, over all runs. A new ledger on the same path goes on
    where the last one ended, whatever budget it is opened with. None keeps the events in memory, for simulations.
    events: those of an in-memory ledger that is being resumed.

    A last line cut short by a crash is charged as the largest event known (its own mu, where that can still be read):
    more than was released, which is nothing. `spend` once more for a release that is repeated with fresh noise.

    Raises InvalidInput, LedgerBusy, LedgerDamaged.
    """

    def __init__(
        self, client: str, budget: Privacy, path: Path | str | None = None, *, events: Iterable[Event] = ()
    ) -> None:
        if budget.per != "total":
            hint = "the spend of a run is epsilon by `spent(noise, rounds, delta)`"
            raise checks.InvalidInput("budget.per", budget.per, "total", hint)
        if not isinstance(client, str) or not client:
            raise checks.InvalidInput("client", client, "a text that is not empty")
        self.client = client
        self.budget = budget
        self._limit = gaussian_mu(budget.epsilon, budget.delta) ** 2 * (1 + _ROUNDING)
        self._events: list[Event] = []
        self._mu_squared = 0.0
        self._file: LedgerFile | None = None
        for event in events:
            if path is not None:
                raise checks.InvalidInput("events", events, "nothing, together with a path")
            self._enter(event)
        if path is not None:
            self._file = LedgerFile(Path(path), client)
            try:
                self._continue(self._file)
            except BaseException:
                self._file.close()
                raise

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything recorded so far, in order."""
        return tuple(self._events)

    @property
    def head(self) -> tuple[int, str]:
        """(number of lines, checksum of the last) of the file; (0, "") in memory."""
        return (0, "") if self._file is None else self._file.head

    @property
    def mu(self) -> float:
        """Gaussian-privacy parameter of all events together: sqrt(sum mu_i^2), for one replaced row."""
        return math.sqrt(self._mu_squared)

    @property
    def spent(self) -> float:
        """Epsilon of all events together, exact, at the budget's delta, for one replaced row."""
        return gaussian_epsilon(self.budget.delta, self.mu)

    def allows(self, mu: float) -> bool:
        """Whether the budget covers one more release of this mu."""
        return self._mu_squared + checks.number("mu", mu, low=0) ** 2 <= self._limit

    def spend(self, event: Event) -> None:
        """Record a release; call it *before* anything is sent, and send only after it returned.

        A crash in between then leaves a spend without a release, never the other way round.

        Raises BudgetExceeded (and records nothing) when the budget does not cover it, InvalidInput for a mechanism that
        this ledger cannot account, LedgerDamaged when the file was touched from outside.
        """
        _check_kind(event, (GAUSSIAN,))
        if not self.allows(event.mu):
            asked = gaussian_epsilon(self.budget.delta, math.hypot(self.mu, event.mu))
            raise BudgetExceeded(self.client, self.spent, asked, self.budget)
        self._record(event)

    def close(self) -> None:
        """Let another ledger open the file; an in-memory ledger has nothing to close."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _continue(self, file: LedgerFile) -> None:
        for line, record in enumerate(file.records, start=2):
            try:
                self._enter(Event(**record))
            except (TypeError, checks.InvalidInput) as error:
                raise LedgerDamaged(file.path, line, f"not an event that this version can account: {error}") from None
        if file.torn is not None:
            readable = _MU.search(file.torn)
            known = [event.mu for event in self._events] + ([float(readable[1])] if readable else [])
            self._record(Event(mu=max(known, default=0.0), kind=TORN))

    def _record(self, event: Event) -> None:
        if self._file is not None:
            # Absent where it is not known, so that such a line reads as it always did.
            self._file.append({name: value for name, value in asdict(event).items() if name != "release" or value})
        self._enter(event)

    def _enter(self, event: Event) -> None:
        _check_kind(event, (GAUSSIAN, TORN))
        self._events.append(event)
        self._mu_squared += event.mu**2


def _check_kind(event: Event, accounted: tuple[str, ...]) -> None:
    if event.kind not in accounted:
        hint = "this ledger composes Gaussian mechanisms and refuses what it cannot account"
        raise checks.InvalidInput("event.kind", event.kind, " or ".join(accounted), hint)

"""A site's own guard: what its owner accepted, what was spent, and the refusal of everything else.

Ask `authorise` before any work, and `record` before anything leaves. Spend first: a crash after `record` leaves a spend
without a release, never a release without a spend.
"""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from types import TracebackType
from typing import Self

from fedhedge import checks
from fedhedge.deployment.ledger_anchor import Anchor
from fedhedge.deployment.site_statement import SiteStatement
from fedhedge.deployment.site_terms import Accepted, Mechanism, Refused, compare
from fedhedge.privacy.gaussian import gaussian_epsilon
from fedhedge.privacy.ledger import BudgetExceeded, Event, Ledger
from fedhedge.privacy.ledger_file import LedgerDamaged

__all__ = ["ANCHOR", "LEDGER", "Accepted", "Mechanism", "Refused", "SiteGuard"]

LEDGER, ANCHOR = "ledger.jsonl", "ledger.anchor"


class SiteGuard:
    """The ledger of a site under the budget that its owner accepted; open it with `SiteGuard.open`.

    Guarantee, for one replaced row of the site: everything released after a `record` that returned, in all experiments
    together, is (epsilon, delta)-private with the accepted epsilon and delta, by exact composition of Gaussian releases
    (`fedhedge.privacy.ledger`), if the releases have the sensitivity and noise that the `Mechanism` states.
    """

    def __init__(self, accepted: Accepted, ledger: Ledger, anchor: Anchor) -> None:
        self.accepted, self._ledger, self._anchor = accepted, ledger, anchor

    @classmethod
    def open(
        cls, folder: Path | str, accepted: Accepted, *, new: bool = False, anchor: Path | str | None = None
    ) -> Self:
        """The guard of the ledger in `folder`, locked against other processes until `close`.

        new: begin a ledger, once in the life of the table. Otherwise the ledger must be there: a lost one is refused
        and never read as a spend of zero. anchor: where the number of lines and the last checksum are noted, so
        that missing last lines are found. By default it is kept in `folder`, and rebuilt from the ledger when it is
        lost; one kept elsewhere must be there as well, and also tells when the whole folder was put back to an
        older state.

        Raises Refused where the ledger is missing, changed or cut; LedgerBusy; InvalidInput where `new` meets a ledger.
        """
        path = Path(folder) / LEDGER
        noted = Anchor(Path(folder) / ANCHOR if anchor is None else Path(anchor))
        begun = path.exists() and b"\n" in path.read_bytes()
        if new and begun:
            raise checks.InvalidInput("ledger", str(path), "none there yet: a ledger is begun only once")
        if new and noted.path.exists():
            hint = "this one shows that a ledger was begun and is lost: put it back from a copy or, only if nothing was"
            hint += " ever released from these rows, remove the anchor and begin again"
            raise checks.InvalidInput("anchor", str(noted.path), "none there yet: a ledger is begun only once", hint)
        if not new and not begun:
            reason = f"the ledger {path} is missing or empty, and what was spent cannot be known"
            begin = "begin one with `fedhedge deploy begin SITE.toml`"
            if noted.path.exists():
                begin = f"remove {noted.path}, which shows that one was begun, and {begin}"
            advice = f"put it back from a copy or, only if nothing was ever released from these rows, {begin}"
            raise Refused(f"{reason}; {advice}")
        try:
            if not new:
                noted.check(path, required=anchor is not None)
            ledger = Ledger(accepted.site, accepted.budget, path)
        except LedgerDamaged as error:
            raise Refused(str(error)) from error
        try:
            noted.set(ledger.head)
        except BaseException:
            ledger.close()
            raise
        return cls(accepted, ledger, noted)

    def authorise(self, round: int, mechanism: Mechanism) -> None:
        """Nothing, where the site may work on this round. Raises Refused with the reason otherwise."""
        checks.integer("round", round, low=0)
        compare(self.accepted, mechanism)
        if not self._ledger.allows(mechanism.mu):
            asked = gaussian_epsilon(self.accepted.budget.delta, math.hypot(self._ledger.mu, mechanism.mu))
            budget = self.accepted.budget
            raise Refused(str(BudgetExceeded(self.accepted.site, self._ledger.spent, asked, budget)))

    def record(self, round: int, mechanism: Mechanism, upload: bytes | None = None) -> bool:
        """Charge the round's releases; send only after this returned. True if charged, False for a retransmission.

        upload: what would be released, with its noise: the bytes of the numbers before any mask, since masks and
        encryption are drawn afresh each time and hide nothing less. Its SHA-256 is kept. The same bytes for the same
        experiment, round and mu are charged once: sending them again tells nobody more, however often it happens.
        Everything else is charged anew, also the same round worked out again with fresh noise (the mean of two noisy
        answers is less noisy than one), and also a call without `upload`. So store the upload before recording it, and
        send the stored one again after a crash or a lost message.

        Raises Refused, and then nothing may leave.
        """
        release = "" if upload is None else hashlib.sha256(upload).hexdigest()
        checks.integer("round", round, low=0)
        compare(self.accepted, mechanism)
        event = Event(mechanism.mu, round, mechanism.experiment, release=release)
        if release and event in self._ledger.events:
            return False
        self.authorise(round, mechanism)
        try:
            self._ledger.spend(event)
        except (BudgetExceeded, LedgerDamaged) as error:
            raise Refused(str(error)) from error
        self._anchor.set(self._ledger.head)
        return True

    def statement(self, also_not_covered: tuple[str, ...] = ()) -> SiteStatement:
        """What was spent so far and what is left."""
        accepted = self.accepted
        return SiteStatement(accepted.site, accepted.samples, accepted.budget, self._ledger.events, also_not_covered)

    def close(self) -> None:
        """Let another process open the ledger."""
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

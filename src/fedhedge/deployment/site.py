"""A site: it answers the coordinator's requests from its own rows, state and budget, and from nothing else."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedhedge import checks
from fedhedge.data import Clients
from fedhedge.data.splits import NAMES
from fedhedge.deployment import memory as store
from fedhedge.deployment.budget import Budget, NoBudget
from fedhedge.deployment.federation import Federation
from fedhedge.deployment.masked_site import MaskedSite
from fedhedge.deployment.masking_pairs import Signing
from fedhedge.deployment.masking_terms import to_arrays
from fedhedge.deployment.memory import Memory, Pending
from fedhedge.deployment.parcel import (
    ADVERTISE,
    AGREE,
    DONE,
    ENROL,
    FINISH,
    INQUIRE,
    MASK,
    MEASURE,
    SHARE,
    UNMASK,
    WORK,
    Parcel,
    Rejected,
    check_numbers,
    pack,
    refusal,
    unpack,
)
from fedhedge.deployment.site_guard import Refused
from fedhedge.deployment.work import Gaussian, Worker
from fedhedge.privacy.noise import FloatArray
from fedhedge.simulation import checkpoint
from fedhedge.simulation.arithmetic import arithmetic
from fedhedge.simulation.evaluate import Evaluator

logger = logging.getLogger(__name__)


class Site:
    """One site of a federation.

    federation: the owner's own copy of what was agreed. name: the site's. clients: its table, as `tables.read` gives
    it. folder: where it keeps its state. share: splits whose mean loss and accuracy the owner lets go, without noise.
    signing: the keys of signed masked sums.
    """

    def __init__(
        self,
        federation: Federation,
        name: str,
        clients: Clients,
        folder: Path,
        guard: Budget | NoBudget,
        gaussian: Gaussian,
        share: Sequence[str] = (),
        signing: Signing | None = None,
    ) -> None:
        self.federation, self.name, self.clients, self.folder, self.guard = federation, name, clients, folder, guard
        self.share = tuple(checks.one_of("share", split, NAMES) for split in share)
        self.number = federation.terms.sites.index(name)
        self.programme = federation.programme
        self.worker = Worker(self.programme, self.number, *clients.rows("train"), gaussian)
        self.fingerprint = federation.fingerprint
        self._evaluators: dict[str, Evaluator] = {}
        masking, sites = federation.masking, federation.terms.sites
        self.masked = None if masking is None else MaskedSite(masking, self.programme, sites, name, signing)

    def handle(self, request: Parcel) -> Parcel:
        """The reply to a request; whatever goes wrong, it is a reply, which tells nothing of the rows."""
        asked = {"site": self.name, "fingerprint": self.fingerprint, "round": request.about.get("round")}
        try:
            reply = self._answer(request)
        except (Rejected, Refused) as error:
            logger.warning("refused %s: %s", request.kind, error)
            return refusal(str(error), **asked)
        except Exception as error:
            # Messages of other errors may hold values of rows: they stay here.
            logger.exception("%s failed", request.kind)
            return refusal(f"{type(error).__name__} at the site, see its log", **asked)
        return Parcel(reply.kind, {**reply.about, **asked}, reply.arrays)

    def _answer(self, request: Parcel) -> Parcel:
        self._check_agreement(request)
        answer = {ENROL: self._enrol, MEASURE: self._measure, FINISH: self._finish}
        if self.masked is None:
            answer |= {INQUIRE: self._inquire, WORK: self._work}
        else:
            # Uploads leave the site masked, or not at all.
            answer |= {ADVERTISE: self._advertise} | dict.fromkeys((SHARE, MASK, AGREE, UNMASK), self._follow)
        if request.kind not in answer:
            raise Rejected(f"a request {request.kind!r} that has no place in what was agreed")
        return answer[request.kind](request)

    def _check_agreement(self, request: Parcel) -> None:
        if request.about.get("fingerprint") == self.fingerprint:
            return
        theirs = request.about.get("agreement")
        lines = checkpoint.differences(theirs, self.federation.agreement) if isinstance(theirs, dict) else []
        raise Refused("another experiment than this site agreed to" + ": " * bool(lines) + "; ".join(lines))

    def _enrol(self, request: Parcel) -> Parcel:
        return Parcel(DONE, {"rows": int(self.clients.counts("train")[0])})

    def _inquire(self, request: Parcel) -> Parcel:
        number, memory = self._opened(request)
        digest = request.digest()
        if memory.asked is not None and (memory.asked.round, memory.asked.digest) == (number, digest):
            return memory.asked.reply
        inquiry = unpack(self.programme.likes.inquiry, request.arrays, "inquiry")
        report = self.worker.probe(inquiry, memory.state, number)
        reply = Parcel(DONE, {}, pack(report, "report"))
        prepared = self.worker.prepare(memory.state, report)
        self._keep(request, Memory(memory.state, memory.committed, None, Pending(number, digest, prepared, reply)))
        return reply

    def _work(self, request: Parcel) -> Parcel:
        return self._released(request, self._upload(request))

    def _upload(self, request: Parcel) -> Parcel:
        """The upload of a round as a reply, which is on the disk and has not left."""
        number, memory = self._opened(request)
        asked = {name: array for name, array in request.arrays.items() if name.startswith("down")}
        digest = Parcel(WORK, {}, asked).digest()
        if memory.pending is not None and (memory.pending.round, memory.pending.digest) == (number, digest):
            # The same question again, of a coordinator that was stopped: the same answer, which costs no budget.
            return memory.pending.reply
        state = memory.state
        if self.programme.algorithm.probes:
            if memory.asked is None or memory.asked.round != number:
                raise Rejected(f"round {number} has had no first phase here")
            state = memory.asked.state
        down = unpack(self.programme.likes.down, request.arrays, "down")
        self.guard.authorise(number, self._experiment(request))
        up, fresh, seen = self.worker.local(down, state, number)
        check_numbers(up, math.inf)
        steps = int(self.programme.steps[self.number])
        about = {"seen": seen, "steps": steps, "as_acknowledged": memory.agrees(_whole(request, "acknowledged"))}
        reply = Parcel(DONE, about, pack(up, "up"))
        waiting = Pending(number, digest, fresh, reply)
        # First on the disk, then charged, then sent: after a crash the same upload is sent again, and charged once.
        self._keep(request, Memory(memory.state, memory.committed, waiting, memory.asked))
        return reply

    def _released(self, request: Parcel, reply: Parcel) -> Parcel:
        self.guard.release(_whole(request, "round"), self._experiment(request), reply.digest().encode())
        return reply

    def _advertise(self, request: Parcel) -> Parcel:
        number, memory = self._opened(request)
        if memory.pending is None or memory.pending.round != number:
            # Nobody is kept waiting for an upload that will not come.
            self.guard.authorise(number, self._experiment(request))
        assert self.masked is not None
        message = self.masked.begin(self._masking_path(request), self._experiment(request), request)
        return Parcel(DONE, {}, to_arrays(message))

    def _follow(self, request: Parcel) -> Parcel:
        masked, told = self.masked, {}
        assert masked is not None

        def upload() -> FloatArray:
            reply = self._released(request, self._upload(request))
            told["as_acknowledged"] = reply.about["as_acknowledged"]
            up = unpack(self.programme.likes.up, reply.arrays, "up")
            try:
                # The server can hold only the mean against this, and is not told the norm.
                check_numbers(up, self.federation.conduct.largest_norm)
            except Rejected:
                raise Rejected("an upload of a norm above largest_norm") from None
            return masked.vector.join(up, reply.about["seen"])

        message = masked.answer(self._masking_path(request), self._experiment(request), request, upload)
        return Parcel(DONE, told, to_arrays(message))

    def _measure(self, request: Parcel) -> Parcel:
        with arithmetic(self.programme.algorithm.precision):
            params = unpack(self.programme.params, request.arrays, "params")
            found = {}
            for split in request.about.get("splits", ()):
                rows = int(self.clients.counts(split)[0]) if split in self.share else 0
                if rows:
                    values = self._evaluator(split)(params)
                    found[split] = {"rows": rows, "metrics": {name: value for name, (_, value) in values.items()}}
        return Parcel(DONE, {"splits": found})

    def _finish(self, request: Parcel) -> Parcel:
        _, memory = self._opened(request)
        self._keep(request, memory)
        if self.masked is not None:
            self.masked.end(self._masking_path(request))
        return Parcel(DONE, {"statement": self.guard.statement(), "committed": memory.committed})

    def _opened(self, request: Parcel) -> tuple[int, Memory]:
        """The round of a request, and the memory after what it acknowledges.

        An update that is asked for again, bit by bit, stays pending.
        """
        number, acknowledged = _whole(request, "round"), _whole(request, "acknowledged")
        path = self._path(request)
        like = self.programme.likes.client
        known = path.exists()
        memory = store.read(path, like, self._about(request)) if known else Memory(self.worker.initial())
        pending = memory.pending
        again = pending is not None and pending.round == number and acknowledged < number
        return number, memory if again and request.kind != FINISH else memory.settle(acknowledged)

    def _keep(self, request: Parcel, memory: Memory) -> None:
        store.write(self._path(request), memory, self._about(request))

    def _path(self, request: Parcel) -> Path:
        return self.folder / f"state-{self._experiment(request)}.npz"

    def _masking_path(self, request: Parcel) -> Path:
        return self.folder / f"masking-{self._experiment(request)}.json"

    def _experiment(self, request: Parcel) -> str:
        """What was agreed, and which run of it."""
        drawn = request.about.get("experiment")
        if not isinstance(drawn, str) or not drawn.isalnum() or len(drawn) > 64:
            raise Rejected("no name of an experiment")
        return f"{self.fingerprint[:12]}-{drawn}"

    def _about(self, request: Parcel) -> dict[str, Any]:
        return {
            "site": self.name,
            "fingerprint": self.fingerprint,
            "experiment": request.about["experiment"],
            "rows": self.clients.digest(),
        }

    def _evaluator(self, split: str) -> Evaluator:
        if split not in self._evaluators:
            precision = self.programme.algorithm.precision
            self._evaluators[split] = Evaluator(self.programme.model, self.clients, split, precision)
        return self._evaluators[split]


def _whole(request: Parcel, name: str) -> int:
    value = request.about.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Rejected(f"{name} is {value!r}, not a whole number")
    return value

"""The coordinator: the round loop of a method over sites that come and go."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fedhedge.algorithms.base import Tree
from fedhedge.checks import InvalidInput
from fedhedge.deployment import progress as book
from fedhedge.deployment.attendance import Attendance
from fedhedge.deployment.exchange import Answers, Expected, check_seen, exchange, number
from fedhedge.deployment.federation import LAW, Federation
from fedhedge.deployment.first_phase import cohort, weigh
from fedhedge.deployment.link import Link
from fedhedge.deployment.masked_round import add_up
from fedhedge.deployment.masking_server import MaskingServer
from fedhedge.deployment.masking_terms import Vector, to_arrays
from fedhedge.deployment.measure import Metric, check_metrics, together
from fedhedge.deployment.parcel import (
    ENROL,
    FINISH,
    INQUIRE,
    MASK,
    MEASURE,
    WORK,
    Parcel,
    Rejected,
    check_numbers,
    pack,
)
from fedhedge.deployment.progress import CHECKPOINT_NAME, Progress
from fedhedge.simulation import Run
from fedhedge.simulation.arithmetic import arithmetic
from fedhedge.simulation.driver import strong
from fedhedge.simulation.history import OVER_ALL

WAIT = 0.2


class NotEnoughSites(RuntimeError):
    """Sites that a run cannot begin without did not come."""


class Coordinator:
    """A run of a federation.

    folder: of the checkpoint; a run that was stopped goes on from there. say: takes a line for each round. roster:
    public keys of all sites, where masked sums are signed.
    Raises InvalidInput, CheckpointMismatch, NotEnoughSites.
    """

    def __init__(
        self,
        federation: Federation,
        link: Link,
        folder: Path,
        say: Callable[[str], None] = print,
        roster: Mapping[str, Any] | None = None,
    ) -> None:
        self.federation, self.link, self.say = federation, link, say
        self.path = folder / CHECKPOINT_NAME
        self.programme = federation.programme
        self.algorithm, self.sites = self.programme.algorithm, federation.terms.sites
        self.warned: list[str] = []
        self.masking, self._roster = federation.masking, roster
        self._at_least = max(federation.conduct.at_least, 0 if self.masking is None else self.masking.needed)

    def run(self) -> Run:
        """Run what is left of the rounds; what comes back is also in the checkpoint."""
        with arithmetic(self.algorithm.precision):
            self.progress = self._begin()
            self._evaluate_when_due()
            while not self.progress.over:
                self._round()
                finished = bool(self.algorithm.finished(self.progress.server))
                self.progress.over = self.progress.done == self.federation.options.rounds or finished
                # Once this is on the disk the uploads of the round count as used.
                self._save()
                self._evaluate_when_due()
            self._finish()
            return book.result(self.progress, self.programme, self.federation, self.warned)

    def _begin(self) -> Progress:
        if self.path.exists():
            found = book.read(self.path, self.programme, self.federation)
            self.say(f"going on after round {found.done}")
            return found
        rows = self._enrol()
        weighting = self.federation.options.weighting
        mass = rows.astype(np.float64) if weighting == "rows" else np.ones(len(self.sites))
        start = self.programme.start(mass, cache(self._initial_loss))
        server = strong(self.algorithm.init_server(start))
        self.programme.check(server, self.programme.initial_states(server))
        steps = int(self.programme.steps.max())
        self.warned = self.algorithm.warnings(self.programme.model, start, self.federation.options.rounds, steps)
        for text in self.warned:
            self.say(f"warning: {text}")
        average = jax.tree.map(jnp.zeros_like, self.algorithm.iterate(server))
        nobody = np.full(len(self.sites), -1)
        return Progress(server, average, mass, nobody, secrets.token_hex(8), Attendance(self.sites))

    def _enrol(self) -> np.ndarray:
        """Training rows of each site, 0 for one that is not there, where a run can begin without it."""
        needed = len(self.sites) if self.federation.options.weighting == "rows" else self._at_least
        online = self._gather(needed, self.federation.conduct.enrolment)
        name = self.federation.fingerprint
        about = {"fingerprint": name, "agreement": self.federation.agreement, "round": 0}
        expected = Expected(name, 0, np.inf, check=lambda told: number(told.get("rows"), "rows", low=1.0))
        answers = self._ask(dict.fromkeys(online, Parcel(ENROL, about)), expected)
        for client, reason in answers.failures.items():
            self.say(f"{self.sites[client]} did not enrol: {reason}")
        if len(answers.clients) < needed:
            raise NotEnoughSites(f"{len(answers.clients)} sites enrolled, and {needed} are needed to begin")
        rows = np.zeros(len(self.sites), np.int64)
        for client, reply in zip(answers.clients, answers.replies, strict=True):
            rows[client] = reply.about["rows"]
        self.say(f"enrolled: {', '.join(self.sites[client] for client in answers.clients)}")
        return rows

    def _round(self) -> None:
        progress, algorithm = self.progress, self.algorithm
        at, mass = progress.done, progress.mass
        online = self._gather(self._at_least)
        asked = [client for client in online if self._drawn(at)[client]]
        failures: dict[int, str] = {}
        if self.masking is not None and len(asked) < self.masking.needed:
            few = f"no sum: it takes {self.masking.needed} sites, and {len(asked)} could be asked"
            asked, failures = [], dict.fromkeys(asked, few)
        weights = {client: float(mass[client]) for client in asked if mass[client] > 0.0}
        if algorithm.weighs and asked:
            key = jax.random.fold_in(self.programme.keys.server, at)
            found = weigh(algorithm, progress.server, asked, mass, key, lambda: self._reports(asked))
            progress.server, weights, failures = found
            progress.probes += len(asked)
            progress.refused += len(failures)
        used: list[int] = []
        if weights:
            down = pack(algorithm.broadcast(progress.server), "down")
            work = self._uploads if self.masking is None else self._sum
            used = work(down, weights, failures)
        progress.done = at + 1
        share = 1.0 / progress.done
        progress.average = jax.tree.map(
            lambda mean, x: mean + share * (x - mean), progress.average, algorithm.iterate(progress.server)
        )
        progress.acknowledged[used] = at
        progress.skipped += len(set(failures) & set(weights))
        progress.attendance.add(at, online, asked, used, failures)
        names = ", ".join(self.sites[client] for client in used) or "nobody"
        absent = [site for client, site in enumerate(self.sites) if client not in online]
        told = [f"{self.sites[client]}: {reason}" for client, reason in failures.items()]
        told += [f"{site}: offline" for site in absent]
        self.say("; ".join([f"round {progress.done} of {self.federation.options.rounds}: {names}", *told]))

    def _uploads(
        self, down: Mapping[str, np.ndarray], weights: Mapping[int, float], failures: dict[int, str]
    ) -> list[int]:
        """Ask these clients for uploads and take them into the model; whose were used. Adds to `failures`."""
        requests = {client: self._request(WORK, client, down) for client in weights}
        check = partial(check_seen, self.programme.likes.seen)
        answers = self._ask(requests, self._expected(self.programme.likes.up, "up", check))
        failures |= answers.failures
        used = answers.clients
        if not used or not self._aggregate(used, answers.stacked(), weights, failures):
            return []
        for client, reply in zip(used, answers.replies, strict=True):
            self._observed(reply.about["seen"])
            self._note_lost_state(client, reply)
        return used

    def _sum(self, down: Mapping[str, np.ndarray], weights: Mapping[int, float], failures: dict[int, str]) -> list[int]:
        """The same by a masked sum: the mean of the uploads stands for each of them."""
        assert self.masking is not None
        # Another one each time, also after a restart that remembers nothing of the last.
        attempt = secrets.randbelow(2**31)
        names = {self.sites[client]: client for client in weights}
        vector = Vector(self.programme)
        experiment = f"{self.federation.fingerprint[:12]}-{self.progress.experiment}"
        session = self.masking.session(experiment, self.progress.done, attempt, list(names), vector)

        def ask(kind: str, messages: Mapping[int, bytes]) -> Answers:
            told = {"attempt": attempt, "clients": list(names)}
            also = down if kind == MASK else {}
            requests = {
                client: self._request(kind, client, {**to_arrays(message), **also}, **told)
                for client, message in messages.items()
            }
            answers = self._ask(requests, self._expected(None, ""))
            for client, reply in zip(answers.clients, answers.replies, strict=True):
                self._note_lost_state(client, reply)
            return answers

        found = add_up(MaskingServer(session, self._roster if self.masking.signed else None), names, ask)
        failures |= found.failures
        if not found.clients:
            return []
        up, seen = vector.split(found.mean)
        try:
            check_numbers(up, self.federation.conduct.largest_norm)
        except Rejected as error:
            failures |= dict.fromkeys(found.clients, f"the mean of the round: {error}")
            return []
        everyone = jax.tree.map(lambda leaf: jnp.repeat(jnp.asarray(leaf), len(found.clients), axis=0), up)
        if not self._aggregate(found.clients, everyone, weights, failures):
            return []
        self._observed({name: len(found.clients) * value for name, value in seen.items()})
        return found.clients

    def _aggregate(self, used: list[int], up: Tree, weights: Mapping[int, float], failures: dict[int, str]) -> bool:
        """Take uploads [S, ...] into the model, unless what comes of it is not finite, which goes into `failures`."""
        progress, algorithm = self.progress, self.algorithm
        shares = np.array([weights[client] for client in used])
        server = algorithm.aggregate(progress.server, up, cohort(used, shares, progress.mass))
        shown = jax.tree.leaves((algorithm.iterate(server), algorithm.broadcast(server)))
        if not all(np.isfinite(np.asarray(leaf)).all() for leaf in shown):
            failures |= dict.fromkeys(used, "the aggregate of the round is not finite")
            return False
        progress.server = server
        progress.steps += float(self.programme.steps[used].sum())
        return True

    def _observed(self, seen: Mapping[str, float]) -> None:
        """Add to the sums of what local steps observe."""
        for name, value in seen.items():
            self.progress.sums[name] = self.progress.sums.get(name, 0.0) + float(value)

    def _note_lost_state(self, client: int, reply: Parcel) -> None:
        if not reply.about.get("as_acknowledged", True):
            self.say(f"{self.sites[client]} came without the state of its last upload")

    def _reports(self, asked: list[int]) -> Answers:
        inquiry = pack(self.algorithm.inquire(self.progress.server), "inquiry")
        requests = {client: self._request(INQUIRE, client, inquiry) for client in asked}
        return self._ask(requests, self._expected(self.programme.likes.report, "report"))

    def _expected(self, like: Tree, prefix: str, check: Callable[[Mapping[str, Any]], object] = dict) -> Expected:
        largest = self.federation.conduct.largest_norm
        return Expected(self.federation.fingerprint, self.progress.done, largest, like, prefix, check)

    def _request(self, kind: str, client: int, arrays: Mapping[str, np.ndarray], **about: Any) -> Parcel:
        told = {
            "fingerprint": self.federation.fingerprint,
            "experiment": self.progress.experiment,
            "round": self.progress.done,
            "acknowledged": int(self.progress.acknowledged[client]),
        }
        return Parcel(kind, told | about, arrays)

    def _ask(self, requests: Mapping[int, Parcel], expected: Expected) -> Answers:
        return exchange(self.link, self.sites, requests, self.federation.conduct.deadline, expected)

    def _drawn(self, at: int) -> np.ndarray:
        if self.federation.conduct.asks != LAW:
            return np.ones(len(self.sites), bool)
        drawn: np.ndarray = self.federation.law.schedule(self.federation.options.seed, at, at + 1)[0]
        return drawn

    def _gather(self, needed: int, seconds: float | None = None) -> list[int]:
        """Clients online, as soon as there are `needed` of them or the time (patience, unless given) is over."""
        until = time.monotonic() + (self.federation.conduct.patience if seconds is None else seconds)
        told = False
        while True:
            there = set(self.link.online())
            online = [client for client, site in enumerate(self.sites) if site in there]
            left = until - time.monotonic()
            if len(online) >= needed or left <= 0.0:
                return online
            if not told:
                missing = ", ".join(site for site in self.sites if site not in there)
                self.say(f"waiting up to {left:.0f} s for {needed - len(online)} more of: {missing}")
                told = True
            time.sleep(WAIT)

    def _evaluate_when_due(self) -> None:
        """Ask the sites online for metrics, at the rounds where a simulation evaluates, and once only."""
        progress, options, algorithm = self.progress, self.federation.options, self.algorithm
        if progress.measured == progress.done or not (progress.over or progress.done % options.evaluate_every == 0):
            return
        models = {"": algorithm.iterate(progress.server)} | ({"average_": progress.average} if progress.over else {})
        everyone = np.arange(len(self.sites))
        for prefix, iterate in models.items():
            for metric in self._measure(algorithm.parameters(iterate), tuple(options.evaluate_on), progress.done):
                for client, value in ((everyone, metric.per_client), (OVER_ALL, metric.over_all)):
                    progress.history.add(progress.done, client, metric.split, prefix + metric.name, value)
        for name in sorted(progress.sums) if progress.steps else ():
            progress.history.add(progress.done, OVER_ALL, "train", name, progress.sums[name] / progress.steps)
        for name, scalar in algorithm.diagnostics(progress.server).items():
            progress.history.add(progress.done, OVER_ALL, "server", name, float(scalar))
        progress.sums, progress.steps, progress.measured = {}, 0.0, progress.done
        self._save()

    def _measure(self, params: Tree, splits: tuple[str, ...], at: int) -> list[Metric]:
        if not splits:
            return []
        about = {"fingerprint": self.federation.fingerprint, "round": at, "splits": splits}
        request = Parcel(MEASURE, about, pack(params, "params"))
        expected = Expected(self.federation.fingerprint, at, np.inf, check=check_metrics)
        answers = self._ask(dict.fromkeys(self._gather(1), request), expected)
        for client, reason in answers.failures.items():
            self.say(f"{self.sites[client]} sent no metrics: {reason}")
        return together(answers, splits, len(self.sites))

    def _initial_loss(self) -> float:
        """The mean loss of the first model over the training rows of the sites that share it."""
        for metric in self._measure(self.programme.params, ("train",), 0):
            if metric.name == "loss":
                return metric.over_all
        allowed = 'sites that share the mean loss of their training rows (share = ["train"]), or a method without need'
        raise InvalidInput("algorithm", self.algorithm.name, allowed)

    def _finish(self) -> None:
        """Give the last acknowledgements, and take the sites' privacy statements; who is away gets neither."""
        progress, deadline = self.progress, self.federation.conduct.deadline
        online = self._gather(len(self.sites), deadline)
        requests = {client: self._request(FINISH, client, {}) for client in online}
        answers = self._ask(requests, self._expected(None, ""))
        for client, reply in zip(answers.clients, answers.replies, strict=True):
            progress.statements[self.sites[client]] = reply.about.get("statement")
        self._save()

    def _save(self) -> None:
        book.write(self.path, self.progress, self.federation)

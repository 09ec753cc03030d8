"""A federated run in progress: the driver round the round loop."""

from __future__ import annotations

import functools
import math
import time
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from tqdm import tqdm

import fedhedge
from fedhedge import checks, files, streams
from fedhedge.algorithms.base import Algorithm, Layout, Start, Tree
from fedhedge.availability import Law
from fedhedge.data import Clients
from fedhedge.models import Architecture, Functional, Model
from fedhedge.simulation import checkpoint
from fedhedge.simulation.batches import Pool
from fedhedge.simulation.costs import costs, scalars
from fedhedge.simulation.evaluate import Evaluator, mean_loss
from fedhedge.simulation.faults import Faults, warnings_about
from fedhedge.simulation.guard import Diverged
from fedhedge.simulation.history import OVER_ALL, History, from_arrays, to_arrays
from fedhedge.simulation.memory import owned
from fedhedge.simulation.on_disk import Disk, Rows, States
from fedhedge.simulation.options import Options
from fedhedge.simulation.rounds import (
    Inputs,
    Keys,
    Messages,
    Plan,
    Schedule,
    State,
    cohort_of_one,
    compiled_cohort_of_one,
    compiled_rounds,
    host_rounds,
)
from fedhedge.simulation.rows import on_device
from fedhedge.simulation.run import Run
from fedhedge.simulation.schedule import Table, compact
from fedhedge.simulation.settings import settings
from fedhedge.simulation.tally import Tally, empty_tally
from fedhedge.streams import Purpose

LONGEST_CHUNK = 1000
HOST_CHUNK = 10
CHECKPOINT_SECONDS = 1.0
# Straight-line code: models of this many parameters, and at most this many local steps in a round.
UNROLL_FROM_SIZE = 50_000
UNROLL_UP_TO_STEPS = 32
# Of laws whose cohorts vary, up to so many clients the largest cohort is planned for.
USUAL_FROM = 256
INDEX_BUDGET = 32 * 2**20
CHECKPOINT_NAME = "checkpoint.npz"
HISTORY_NAME = "history.parquet"


class Simulation:
    """A run in progress: checked settings, device arrays, and the state between two chunks of rounds."""

    def __init__(
        self,
        algorithm: Algorithm,
        model: Model,
        clients: Clients,
        law: Law,
        options: Options,
        client_state: Path | None = None,
    ) -> None:
        """client_state: the folder on whose disk the clients' states are kept; None keeps them in memory."""
        checks.instance("model", model, (Functional, Architecture), "a model, such as fedhedge.models.MLP()")
        checks.instance("clients", clients, Clients, "fedhedge.data.Clients, such as Clients.from_arrays(X, y, groups)")
        checks.instance("law", law, Law, "a law of fedhedge.availability, such as FixedSize(size=3)")
        self.algorithm, self.clients, self.options = algorithm, clients, options
        self.law = law.bind(len(clients))
        self.steps = options.steps(len(clients))
        seed, batch_size = options.seed, options.batch_size
        self.row_counts = clients.counts("train")
        smallest, widest = int(self.row_counts.min()), int(self.row_counts.max())
        on_cpu = jax.default_backend() == "cpu"
        # Other devices have memory of their own, and refuse what does not fit there.
        if on_cpu:
            options.check_memory(max(1, self.law.smallest()), int(self.steps.max()), widest)

        self.feature_shape = clients.features.shape[1:]
        self.model = model.build(self.feature_shape, len(clients.classes or ()))
        self.evaluators = [Evaluator(self.model, clients, split, algorithm.precision) for split in self._splits()]
        self.mass = self.row_counts if options.weighting == "rows" else np.ones(len(clients))
        self.client_state = client_state
        self.disk = Disk(Rows(clients, algorithm.precision) if clients.on_disk else None, None)
        pool = self._pool()
        self.model.check(pool.features, pool.labels)
        keys = Keys(*(streams.key(seed, purpose) for purpose in (Purpose.BATCHES, Purpose.NOISE, Purpose.SERVER)))
        self.inputs = Inputs(algorithm, pool, keys)
        slow_in_loops = on_cpu and self.model.convolutional
        if options.loop == "compiled" and not algorithm.traceable:
            raise checks.InvalidInput("loop", "compiled", f'"host" or "auto": {algorithm.name} calls a solver')
        needs_host = slow_in_loops or not algorithm.traceable
        self.host_loop = needs_host if options.loop == "auto" else options.loop == "host"
        self.varying = self.law.smallest() < self.law.largest()
        faults = options.faults or Faults()
        self.plan = Plan(
            model=self.model,
            steps=int(self.steps.max()),
            batch_size=batch_size,
            widest=widest,
            ragged=smallest < widest if batch_size is None else smallest < batch_size,
            uniform_steps=bool((self.steps == self.steps[0]).all()),
            may_be_empty=self.law.smallest() == 0 or faults.lost > 0.0 or algorithm.weighs,
            skip_nonfinite=options.on_nonfinite == "skip",
            keep_unheard=not faults.acknowledged,
            layout=Layout(
                side_by_side=not on_cpu,
                unroll=slow_in_loops or (on_cpu and self._worth_unrolling()),
                padded=self.varying or algorithm.weighs,
            ),
        )
        self.settings = settings(algorithm, model, clients, law, options)
        self.chunk = self._chunk_length()
        self.begin()

    def _pool(self) -> Pool:
        """All training rows; of rows on disk, those of client 0, which say what the others are like."""
        if self.disk.rows is not None:
            return self.disk.rows.slices(np.zeros(1, np.int64))
        offsets, counts = self.clients.offsets("train")[:-1], self.row_counts
        rows = on_device(self.clients, "train", self.algorithm.precision)
        return Pool(*rows, jnp.asarray(offsets, jnp.int32), jnp.asarray(counts, jnp.int32))

    def _worth_unrolling(self) -> bool:
        """Whether straight-line code pays: clients of a large model then run on several cores at once."""
        size = scalars(jax.eval_shape(self.model.init, self.inputs.keys.noise))
        return size >= UNROLL_FROM_SIZE and self.law.largest() * int(self.steps.max()) <= UNROLL_UP_TO_STEPS

    def _chunk_length(self) -> int:
        longest = min(HOST_CHUNK if self.host_loop else LONGEST_CHUNK, self.options.evaluate_every, self.options.rounds)
        if self.plan.batch_size is not None:
            bytes_per_round = 4 * self._usual_slots() * self.plan.steps * self.plan.batch_size
            longest = min(longest, max(1, INDEX_BUDGET // bytes_per_round))
        return longest

    def _usual_slots(self) -> int:
        """Slots that hardly any round exceeds: memory is planned by them."""
        most = self.law.largest()
        if not self.varying or most <= USUAL_FROM:
            return most
        mean = float(self.law.inclusion_probabilities().sum())
        return min(most, math.ceil(mean + 6.0 * math.sqrt(mean)))

    @property
    def _batched(self) -> bool:
        """Whether mini-batches are all that the method sees of the rows."""
        return self.plan.batch_size is not None and not self.algorithm.probes

    def begin(self) -> None:
        """Put the run before its first round."""
        precision = self.algorithm.precision
        model, clients = self.model, self.clients
        params = jax.jit(model.init)(streams.key(self.options.seed, Purpose.INIT))
        # The function must not hold the simulation, which holds it: a ring of them keeps arrays until it is collected.
        loss = functools.cache(lambda: mean_loss(model, params, clients, precision))
        self.start = Start(params, len(clients), self.mass / self.mass.sum(), loss)
        server = strong(self.algorithm.init_server(self.start))
        if self.client_state is None:
            states = self.algorithm.init_clients(len(self.clients), server)
        else:
            self.disk.states = States(self.client_state, self.algorithm, jax.tree.map(jnp.copy, server), len(clients))
            states, _ = self.disk.states.read(np.zeros(1, np.int64))
        self.at_once = self.disk.rounds_at_once(self.plan, self._usual_slots(), self._batched)
        average = jax.tree.map(jnp.zeros_like, self.algorithm.iterate(server))
        self.state = owned(State(server, states, average, jnp.asarray(0, jnp.int32)), params)
        if self.options.faults is not None and self.options.faults.forgets and self.disk.states is None:
            self.inputs = self.inputs._replace(initial=jax.tree.map(jnp.copy, states))
        messages = self._messages(server, states)
        self.observed = tuple(sorted(messages.seen))
        self.costs = costs(self.algorithm, messages, server, states)
        self.tally = empty_tally(self.observed)
        self.history = History()
        self.took_part: list[np.ndarray] = []
        self.done, self.skipped, self.refused, self.lost, self.asked = 0, 0, 0, 0, 0
        self.warned = self.algorithm.warnings(self.model, self.start, self.options.rounds, self.plan.steps)
        self.warned += warnings_about(self.options.faults, self.costs["client_state"])
        # True once all rounds are done, or the method says that it is finished.
        self.over = False

    def _splits(self) -> list[str]:
        """The splits to evaluate on, without those that hold no row."""
        return [split for split in self.options.evaluate_on if self.clients.counts(split).sum() > 0]

    def _messages(self, server: Tree, states: Tree) -> Messages:
        """Shapes of one client's messages, and of what its local steps observe."""
        # The compiled form keeps its traces: many runs of one form are traced once.
        of_one = compiled_cohort_of_one.eval_shape if self.algorithm.traceable else cohort_of_one
        messages: Messages = of_one(self.plan, self.inputs, server, states)
        return messages

    def run(self, folder: Path | None, resume: bool, progress: bool | None) -> Run:
        """Run what is left of the rounds; with a folder, checkpoint there as it goes."""
        for text in self.warned:
            warnings.warn(f"{self.algorithm.name}: {text}", stacklevel=3)
        path = None if folder is None else folder / CHECKPOINT_NAME
        if path is not None and resume and path.exists():
            self._restore(path)
        with _bar(self.options.rounds, self.done, self.algorithm.name, progress) as bar:
            self._loop(path, bar)
        return self.result()

    def _loop(self, path: Path | None, bar: Any) -> None:
        saved = time.monotonic()
        if self.done == 0:
            self.evaluate()
        while not self.over:
            stop = self.next_stop()
            table = self.table(stop)
            schedule = self.schedule(table, self.slots(table))
            self.accept(*self._advance(schedule, table.length), table)
            bar.update(self.done - bar.n)
            if path is not None and (self.over or time.monotonic() - saved > CHECKPOINT_SECONDS):
                self._save(path)
                saved = time.monotonic()

    def _advance(self, schedule: Schedule, length: int) -> tuple[State, Tally, jax.Array | np.ndarray | None]:
        """State, tally and who trained after the first `length` rounds: all at once, or as many as the disk allows."""
        if length <= self.at_once:
            return self._rounds(self.state, self.tally, schedule, length)
        state, tally = self.state, self.tally
        trained: list[Any] = []
        for first in range(0, length, self.at_once):
            last = min(first + self.at_once, length)
            part = jax.tree.map(lambda leaf, at=slice(first, last): leaf[at], schedule)
            state, tally, who = self._rounds(state, tally, part, last - first)
            trained.append(who)
            if int(tally.bad_round) >= 0 or bool(self.algorithm.finished(state.server)):
                break
        return state, tally, np.concatenate(trained) if self.algorithm.weighs else None

    def _rounds(
        self, state: State, tally: Tally, schedule: Schedule, length: int
    ) -> tuple[State, Tally, jax.Array | None]:
        inputs, state, schedule = self.disk.load(self.plan, self.inputs, state, schedule, length, self._batched)
        work = (self.plan, inputs, state, tally, schedule)
        if self.host_loop:
            state, tally, trained = host_rounds(*work, length)
        else:
            state, tally, trained = compiled_rounds(*work, jnp.asarray(length, jnp.int32))
        return self.disk.keep(state), tally, trained

    def next_stop(self) -> int:
        """The round at which the next chunk ends: full, or at an evaluation, or at the end."""
        every = self.options.evaluate_every
        return min(self.done + self.chunk, self.options.rounds, every * (self.done // every + 1))

    def table(self, stop: int) -> Table:
        """Who gets through in the rounds up to `stop`, and what goes wrong there."""
        seed, faults = self.options.seed, self.options.faults
        cohorts = self.law.cohorts(seed, self.done, stop)
        if faults is None:
            return Table.of(cohorts)
        return Table.of(cohorts, faults.of_cohorts(seed, self.done, cohorts, len(self.clients)))

    def slots(self, table: Table) -> int:
        """Slots that cohorts of these rounds need.

        Powers of two for cohorts of varying size: few compilations, and no slots for clients that never come at once.
        """
        if not self.varying:
            return self.law.largest()
        largest = int(table.sizes.max())
        return min(len(self.clients), 1 << max(0, largest - 1).bit_length())

    def schedule(self, table: Table, slots: int) -> Schedule:
        """The table of participants as slots, padded to a whole chunk where one compilation serves all chunks."""
        capacity = table.length if self.host_loop else self.chunk
        return compact(table, self.done, capacity, slots, self.mass, self.steps)

    def accept(self, state: State, tally: Tally, trained: jax.Array | np.ndarray | None, table: Table) -> None:
        """Take the state after the rounds of this table, and evaluate when it is time to.

        trained: bool[R, S], who trained, where the method decides that. Raises Diverged when a round was not finite.
        """
        if int(tally.bad_round) >= 0:
            failure = (int(tally.bad_round), int(tally.bad_client), self.clients.names, self.algorithm)
            raise Diverged(*failure, report=bool(tally.bad_report))
        self.state, self.tally = state, tally
        first, self.done = self.done, int(state.done)
        stopped = self.done == self.options.rounds or self.done < first + table.length
        self.over = stopped or bool(self.algorithm.finished(state.server))
        took = table.rows < self.done - first
        if trained is not None:
            self.asked += int(took.sum())
            took[took] = np.asarray(trained)[table.rows[took], table.slots[took]]
        if table.lost is not None:
            self.lost += int((took & table.lost).sum())
            took &= ~table.lost
        self.took_part.append(np.stack([table.rows[took] + first, table.clients[took]]).astype(np.int64))
        if self.done % self.options.evaluate_every == 0 or self.over:
            self.evaluate()

    def evaluate(self) -> None:
        """Put the current model's metrics, and what was seen since the last time, into the history."""
        params = self.algorithm.parameters(self.algorithm.iterate(self.state.server))
        self._measure(params, "")
        if self.over:
            self._measure(self.algorithm.parameters(self.state.average), "average_")
        steps = float(self.tally.steps)
        for name in self.observed if steps else ():
            self.history.add(self.done, OVER_ALL, "train", name, float(self.tally.sums[name]) / steps)
        for name, value in self.algorithm.diagnostics(self.state.server).items():
            self.history.add(self.done, OVER_ALL, "server", name, float(value))
        self.skipped += int(self.tally.skipped)
        self.refused += int(self.tally.refused)
        self.tally = empty_tally(self.observed)

    def _measure(self, params: Tree, prefix: str) -> None:
        everyone = np.arange(len(self.clients))
        for evaluator in self.evaluators:
            for metric, (per_client, over_all) in evaluator(params).items():
                self.history.add(self.done, everyone, evaluator.split, prefix + metric, per_client)
                self.history.add(self.done, OVER_ALL, evaluator.split, prefix + metric, over_all)

    def _save(self, path: Path) -> None:
        arrays = checkpoint.flatten(self.state, "state") | checkpoint.flatten(self.tally, "tally")
        arrays |= to_arrays(self.history.frame())
        arrays["took_part"] = self._participation()
        arrays["done"] = np.asarray([self.done, self.skipped, self.refused, self.lost, self.asked, self.over])
        checkpoint.write(path, self.settings, arrays)
        files.write_table(path.with_name(HISTORY_NAME), self.history.frame())

    def _restore(self, path: Path) -> None:
        _, arrays = checkpoint.read(path, self.settings)
        self.state = jax.tree.map(jnp.array, checkpoint.restore(self.state, arrays, "state"))
        self.tally = jax.tree.map(jnp.asarray, checkpoint.restore(self.tally, arrays, "tally"))
        self.history = History(from_arrays(arrays))
        self.took_part = [arrays["took_part"]]
        numbers = (int(value) for value in arrays["done"])
        self.done, self.skipped, self.refused, self.lost, self.asked, over = numbers
        self.over = bool(over)

    def _participation(self) -> np.ndarray:
        self.took_part = [np.concatenate(self.took_part, axis=1)] if self.took_part else [np.zeros((2, 0), np.int64)]
        return self.took_part[0]

    def _host(self, iterate: Tree) -> Tree:
        return jax.tree.map(np.asarray, self.algorithm.parameters(iterate))

    def result(self) -> Run:
        """What the run leaves."""
        who = self._participation()
        counts = {
            "rounds": self.done,
            "empty_rounds": self.done - len(np.unique(who[0])),
            "uploads": who.shape[1],
            "skipped_uploads": self.skipped,
        }
        if self.options.faults is not None:
            counts["lost_uploads"] = self.lost
        if self.algorithm.weighs:
            counts["probes"] = self.asked
        if self.algorithm.probes:
            counts["skipped_reports"] = self.refused
        return Run(
            model=self.model,
            params=self._host(self.algorithm.iterate(self.state.server)),
            average_params=self._host(self.state.average),
            history=self.history.frame(),
            participation=pd.DataFrame({"round": who[0], "client": who[1]}),
            settings=self.settings,
            costs=self.costs,
            counts=counts,
            classes=tuple(self.clients.classes or ()),
            feature_shape=self.feature_shape,
            names=self.clients.names,
            feature_names=self.clients.feature_names,
            warnings=tuple(self.warned),
            version=fedhedge.__version__,
            inclusion_probabilities=self.law.inclusion_probabilities(),
            weights=self.law.weights(),
        )


def strong(tree: Tree) -> Tree:
    """The same arrays with types that a later value keeps: a weakly typed leaf would cost a second compilation."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.asarray(leaf).dtype), tree)


def _bar(total: int, done: int, name: str, progress: bool | None) -> Any:
    hidden = None if progress is None else not progress
    return tqdm(total=total, initial=done, desc=name, unit="round", disable=hidden, leave=False)

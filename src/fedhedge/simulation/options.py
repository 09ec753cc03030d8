"""The settings of a simulation beside its four parts (algorithm, model, clients, law), checked once."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from fedhedge import checks, streams
from fedhedge.simulation import memory
from fedhedge.simulation.faults import Faults

SPLITS = ("train", "validation", "test")


@dataclasses.dataclass(frozen=True)
class Options:
    """What `simulate` takes beside algorithm, model, clients and law; see there for the meaning.

    Raises InvalidInput that names the option, the value received and what is allowed.
    """

    rounds: int = 1000
    local_steps: int | Sequence[int] = 5
    batch_size: int | None = 32
    seed: int = 0
    evaluate_every: int = 50
    evaluate_on: Sequence[str] = ("test",)
    weighting: str = "uniform"
    on_nonfinite: str = "stop"
    loop: str = "auto"
    faults: Faults | None = None

    def __post_init__(self) -> None:
        checks.integer("rounds", self.rounds, low=1)
        if isinstance(self.local_steps, Sequence) or np.ndim(self.local_steps) > 0:
            object.__setattr__(self, "local_steps", checks.integers("local_steps", self.local_steps, low=1))
        else:
            object.__setattr__(self, "local_steps", checks.integer("local_steps", self.local_steps, low=1))
        if isinstance(self.batch_size, str):
            raise checks.InvalidInput("batch_size", self.batch_size, "a whole number, 1 or more, or None for all rows")
        if self.batch_size is not None:
            checks.integer("batch_size", self.batch_size, low=1)
        streams.check_seed(self.seed)
        checks.integer("evaluate_every", self.evaluate_every, low=1)
        if isinstance(self.evaluate_on, str) or not isinstance(self.evaluate_on, Sequence):
            raise checks.InvalidInput("evaluate_on", self.evaluate_on, "a list of " + ", ".join(SPLITS))
        object.__setattr__(
            self, "evaluate_on", tuple(checks.one_of("evaluate_on", split, SPLITS) for split in self.evaluate_on)
        )
        checks.one_of("weighting", self.weighting, ("uniform", "rows"))
        checks.one_of("on_nonfinite", self.on_nonfinite, ("stop", "skip"))
        checks.one_of("loop", self.loop, ("auto", "compiled", "host"))
        allowed = "None, or faults such as fedhedge.Faults(lost=0.1)"
        checks.instance("faults", self.faults, (Faults, type(None)), allowed)

    def steps(self, clients: int) -> np.ndarray:
        """Local steps of each client, int32[N]; raises InvalidInput when a list has another length."""
        if isinstance(self.local_steps, int):
            return np.full(clients, self.local_steps, np.int32)
        if len(self.local_steps) != clients:
            allowed = f"one number, or {clients} numbers, one for each client"
            raise checks.InvalidInput("local_steps", self.local_steps, allowed)
        return np.asarray(self.local_steps, np.int32)

    def check_memory(self, clients: int, steps: int, widest: int) -> None:
        """Refuse mini-batches of a round whose row numbers alone are more than this machine can hold.

        clients: at work at once. steps: of the one with most. widest: rows of the largest client.
        """
        needed, there = 4 * clients * steps * (self.batch_size or widest), memory.of_this_machine()
        if needed > there:
            shown = f"{clients} at once: {needed / 2**30:,.0f} GiB; this machine has {there / 2**30:,.0f} GiB"
            allowed = "so few that the row numbers of one round's mini-batches fit in memory"
            raise checks.InvalidInput("local_steps, batch_size", (steps, self.batch_size), allowed, shown)

    def settings(self) -> dict[str, object]:
        """The options that a result depends on, as plain values (how the rounds are looped is not one)."""
        chosen = dataclasses.asdict(self)
        del chosen["loop"]
        if self.faults is None:
            del chosen["faults"]
        return {name: list(value) if isinstance(value, tuple) else value for name, value in chosen.items()}

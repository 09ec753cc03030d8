"""Consensus by round: the models of the clients, their mean, and the result, of runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from fedhedge.algorithms import DroAdmm
from fedhedge.algorithms.dro_admm import Down
from fedhedge.experiments.selection import Job, prepared
from fedhedge.experiments.tables_data import Floats
from fedhedge.simulation.driver import Simulation
from fedhedge.simulation.side_by_side import together


class Trace(NamedTuple):
    """Of rounds 0..T: what the server broadcasts, Mbar, and the result, both [T + 1, K, P]; each M_g [T + 1, G, K, P].

    models is None for a method without models of its clients' own.
    """

    center: Floats
    result: Floats
    models: Floats | None


class Recorded(Simulation):
    """A run that keeps its states after each round, in place of metrics."""

    def begin(self) -> None:
        super().begin()
        self.states: list[Any] = []

    def evaluate(self) -> None:
        self.states.append(jax.tree.map(np.asarray, (self.state.server, self.state.clients)))

    def trace(self) -> Trace:
        """What was kept, by round."""
        centers, results, models = [], [], []
        for server, clients in self.states:
            down = self.algorithm.broadcast(server)
            centers.append(down.center if isinstance(down, Down) else down)
            results.append(self.algorithm.iterate(server))
            models.append(server.models if isinstance(self.algorithm, DroAdmm) else getattr(clients, "model", None))
        of_clients = None if models[0] is None else np.asarray(models)
        return Trace(np.asarray(centers), np.asarray(results), of_clients)


def recorded(jobs: Sequence[Job], rounds: int) -> list[Trace]:
    """The runs of these jobs, one trace each."""
    runs = [prepared(job, rounds, every=1, kind=Recorded) for job in jobs]
    together(runs)
    return [run.trace() for run in runs]


def rounds_to_share(curve: Floats, share: float = 0.95) -> int:
    """First round at which a curve by round, from round 0, is at this share of its largest value."""
    return int(np.argmax(curve >= share * curve.max()))

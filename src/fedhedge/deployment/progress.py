"""All that a run of the coordinator is between two rounds, and the file that it goes on from."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

import fedhedge
from fedhedge.algorithms.base import Tree
from fedhedge.deployment import attendance
from fedhedge.deployment.attendance import Attendance
from fedhedge.deployment.federation import Federation
from fedhedge.deployment.programme import Programme
from fedhedge.simulation import Run, checkpoint, history
from fedhedge.simulation.costs import costs
from fedhedge.simulation.history import History

CHECKPOINT_NAME = "checkpoint.npz"


@dataclass
class Progress:
    """Where a run stands.

    server, average: its state, and the mean of its iterates. mass: weights of the sites before they are normalised [N].
    acknowledged: the last round of each site whose upload was used [N], -1 for none. experiment: a name drawn when the
    run began, by which sites tell a resumed run from a new one. sums, steps: of what local steps observed since the
    last evaluation. statements: what sites said of their privacy at the end. measured: the last round evaluated.
    """

    server: Tree
    average: Tree
    mass: np.ndarray
    acknowledged: np.ndarray
    experiment: str
    attendance: Attendance
    history: History = field(default_factory=History)
    sums: dict[str, float] = field(default_factory=dict)
    steps: float = 0.0
    done: int = 0
    measured: int = -1
    skipped: int = 0
    refused: int = 0
    probes: int = 0
    over: bool = False
    statements: dict[str, Any] = field(default_factory=dict)

    def participation(self) -> pd.DataFrame:
        """(round, client) of every upload that was used."""
        return self.attendance.participation()


PLAIN = ("experiment", "sums", "steps", "done", "measured", "skipped", "refused", "probes", "over", "statements")


def settings(federation: Federation) -> dict[str, Any]:
    """What a run of this federation has on record, under the names that a simulation uses."""
    conduct, agreed = federation.conduct, federation.agreement
    asks = {"asks": conduct.asks} | ({"law": federation.law.settings()} if conduct.asks == "law" else {})
    asks |= {} if federation.masking is None else {"masking": vars(federation.masking)}
    about = {"source": "federation", "clients": federation.number_of_clients, "digest": federation.fingerprint}
    found: dict[str, Any] = json.loads(
        json.dumps(
            {
                "algorithm": agreed["algorithm"],
                "model": agreed["model"],
                "availability": {"name": "Federation", **asks},
                "data": agreed["data"] | agreed["terms"] | about,
            }
            | federation.options.settings()
        )
    )
    return found


def write(path: Path, progress: Progress, federation: Federation) -> None:
    """Write the progress, atomically; what it says is what sites are told from then on."""
    arrays = checkpoint.flatten(progress.server, "server") | checkpoint.flatten(progress.average, "average")
    arrays |= history.to_arrays(progress.history.frame()) | attendance.to_arrays(progress.attendance.frame())
    arrays |= {"mass": progress.mass, "acknowledged": progress.acknowledged}
    plain = json.dumps({name: getattr(progress, name) for name in PLAIN}, allow_nan=False)
    checkpoint.write(path, settings(federation), arrays | {"plain": np.frombuffer(plain.encode(), np.uint8)})


def read(path: Path, programme: Programme, federation: Federation) -> Progress:
    """What `write` wrote; raises CheckpointMismatch for another federation's."""
    _, arrays = checkpoint.read(path, settings(federation))
    server = programme.likes.server
    average = programme.algorithm.iterate(server)
    return Progress(
        server=jax.tree.map(jnp.asarray, checkpoint.restore(server, arrays, "server")),
        average=jax.tree.map(jnp.asarray, checkpoint.restore(average, arrays, "average")),
        mass=arrays["mass"],
        acknowledged=arrays["acknowledged"],
        attendance=Attendance(federation.terms.sites, attendance.from_arrays(arrays)),
        history=History(history.from_arrays(arrays)),
        **json.loads(arrays["plain"].tobytes()),
    )


def result(progress: Progress, programme: Programme, federation: Federation, warned: list[str]) -> Run:
    """The run as `fedhedge.simulate` leaves one; its law is what happened: frequencies in place of probabilities."""
    algorithm, used = programme.algorithm, progress.participation()
    inclusion, weights = progress.attendance.frequencies(progress.done)
    counts = {
        "rounds": progress.done,
        "empty_rounds": progress.done - used["round"].nunique(),
        "uploads": len(used),
        "skipped_uploads": progress.skipped,
    }
    if algorithm.weighs:
        counts["probes"] = progress.probes
    if algorithm.probes:
        counts["skipped_reports"] = progress.refused
    terms = federation.terms
    states = programme.initial_states(programme.likes.server)
    last, mean = (
        jax.tree.map(np.asarray, algorithm.parameters(iterate))
        for iterate in (algorithm.iterate(progress.server), progress.average)
    )
    return Run(
        model=programme.model,
        params=last,
        average_params=mean,
        history=progress.history.frame(),
        participation=used,
        settings=settings(federation),
        costs=costs(algorithm, programme.likes.messages, progress.server, states),
        counts=counts,
        classes=terms.classes,
        feature_shape=programme.shape,
        names=terms.sites,
        feature_names=(*terms.columns, *(["constant"] if terms.constant else [])),
        warnings=tuple(warned),
        version=fedhedge.__version__,
        inclusion_probabilities=inclusion,
        weights=weights,
    )

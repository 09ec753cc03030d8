"""FedeRage that counts each client's steps in the tail, and runs of it kept as small files."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from fedhedge import files
from fedhedge.algorithms import FedeRage
from fedhedge.algorithms.base import Batches, Tree, traced
from fedhedge.experiments.absolute_loss import Floats
from fedhedge.experiments.training import Job
from fedhedge.models import Functional
from fedhedge.simulation import CheckpointMismatch
from fedhedge.simulation.checkpoint import differences
from fedhedge.simulation.side_by_side import together

FIELDS = tuple(field.name for field in dataclasses.fields(FedeRage))


@traced
@dataclasses.dataclass(frozen=True)
class CountingFedeRage(FedeRage):
    """FedeRage itself; each client keeps how many of its local steps had f >= beta."""

    name: ClassVar[str] = "CountingFedeRage"

    def init_clients(self, clients: int, server: Tree) -> Tree:
        return jnp.zeros(clients)

    def local(
        self, model: Functional, down: Tree, clients: Tree, batches: Batches, keys: jax.Array
    ) -> tuple[Tree, Tree, dict[str, jax.Array]]:
        up, counted, seen = super().local(model, down, clients, batches, keys)
        return up, counted + seen["tail_rate"], seen


def kept(jobs: Sequence[Job], folder: Path) -> list[dict[str, Floats]]:
    """Local steps and tail steps of each client, [N] each, for each job; those in `folder` are not run again.

    Raises CheckpointMismatch when a file there is of other settings, or damaged.
    """
    paths = [folder / f"{job.name}.json" for job in jobs]
    missing = [(job, path) for job, path in zip(jobs, paths, strict=True) if not path.exists()]
    simulations = [job.simulation() for job, _ in missing]
    together(simulations)
    for simulation, (job, path) in zip(simulations, missing, strict=True):
        run = simulation.result()
        came = np.bincount(run.participation["client"], minlength=len(run.weights))
        steps = came * np.asarray(run.settings["local_steps"])
        content = {"settings": job.settings(), "steps": steps, "tail": np.asarray(simulation.state.clients)}
        files.write_json(path, files.plain(content))
    return [_read(path, job) for path, job in zip(paths, jobs, strict=True)]


def _read(path: Path, job: Job) -> dict[str, Floats]:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        lines = differences(content["settings"], files.plain(job.settings()))
        found = {name: np.asarray(content[name], float) for name in ("steps", "tail")}
    except (ValueError, KeyError, TypeError):
        raise CheckpointMismatch(f"{path} is damaged (remove it to compute it again)") from None
    if lines:
        raise CheckpointMismatch(f"{path} is of another run: {'; '.join(lines)} (take another folder by --out)")
    return found

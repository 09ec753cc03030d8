"""Simulation of one federated run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import jax

from fedhedge import checks
from fedhedge.algorithms.base import Algorithm
from fedhedge.availability import Law
from fedhedge.data import Clients
from fedhedge.models import Model
from fedhedge.simulation.arithmetic import arithmetic
from fedhedge.simulation.driver import Simulation
from fedhedge.simulation.faults import Faults
from fedhedge.simulation.options import Options
from fedhedge.simulation.run import Run


def simulate(
    algorithm: Algorithm,
    model: Model,
    clients: Clients,
    law: Law,
    *,
    rounds: int = 1000,
    local_steps: int | Sequence[int] = 5,
    batch_size: int | None = 32,
    seed: int = 0,
    evaluate_every: int = 50,
    evaluate_on: Sequence[str] = ("test",),
    weighting: str = "uniform",
    on_nonfinite: str = "stop",
    checkpoint: str | Path | None = None,
    resume: bool = True,
    loop: str = "auto",
    client_state: str | Path | None = None,
    faults: Faults | None = None,
    progress: bool | None = None,
) -> Run:
    """Train `model` by `algorithm` over `clients`, of whom `law` lets a random set through in each round.

    local_steps: H, one number or one for each client. batch_size: rows b of a mini-batch, part of the problem under
    CVaR; None takes all of a client's rows. evaluate_every: rounds between evaluations (round 0 and the last one
    are always evaluated) on the splits `evaluate_on`. weighting: "uniform" (agnostic) or "rows" (by training rows).
    on_nonfinite: "stop" raises Diverged, "skip" leaves the upload out. checkpoint: a folder; `resume` continues
    what is there, and the history is written beside it as it goes. loop: "compiled" (rounds in one programme),
    "host" (one programme a round), or "auto". client_state: a folder on a disk with room for the states of all
    clients, which are then kept there while the run lasts, and in memory those of the clients at work alone; not
    together with checkpoint. faults: uploads and states that get lost; None: none.
    progress: a bar on standard error; None shows it on a terminal only.

    The same arguments give the same result bit for bit, whether or not the run was interrupted.
    Raises InvalidInput for arguments that cannot be used, Diverged, and CheckpointMismatch.
    """
    options = Options(
        rounds, local_steps, batch_size, seed, evaluate_every, evaluate_on, weighting, on_nonfinite, loop, faults
    )
    if checkpoint is not None:
        checks.instance("checkpoint", checkpoint, (str, Path), "a folder")
    if client_state is not None:
        checks.instance("client_state", client_state, (str, Path), "a folder")
        if checkpoint is not None:
            raise checks.InvalidInput("client_state", str(client_state), "None where checkpoint is given")
        try:
            if not str(client_state):
                raise FileNotFoundError("no name")
            Path(client_state).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            why = error.strerror or str(error)
            raise checks.InvalidInput("client_state", str(client_state), "a folder, or a place for one", why) from None
    folder, on_disk = (None if given is None else Path(given) for given in (checkpoint, client_state))
    checks.boolean("resume", resume)
    checks.instance("algorithm", algorithm, Algorithm, "a method of fedhedge.algorithms, such as FedAvg(step=0.1)")
    if jax.tree.leaves(algorithm) == [algorithm]:
        raise checks.InvalidInput("algorithm", algorithm, "a frozen dataclass under @fedhedge.algorithms.traced")
    with arithmetic(algorithm.precision):
        return Simulation(algorithm, model, clients, law, options, on_disk).run(folder, resume, progress)

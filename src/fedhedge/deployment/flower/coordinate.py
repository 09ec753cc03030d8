"""The coordinator's process: it takes the one task of its run from the SuperLink, and runs the rounds over the grid."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fedhedge.deployment.coordinator import Coordinator
from fedhedge.deployment.extra import needed
from fedhedge.deployment.federation import Federation
from fedhedge.deployment.flower.grid_link import GridLink
from fedhedge.deployment.flower.tasks import TRIES, Runtime, acquire, take, working
from fedhedge.deployment.parcel import Parcel
from fedhedge.simulation import Run

POLL = 0.2
SECONDS = 120.0


class NoTask(RuntimeError):
    """The SuperLink offered no task for the run that was submitted."""


def coordinate(
    federation: Federation,
    runtime: Runtime,
    run_id: int,
    sign: Callable[[Parcel], Parcel],
    folder: Path,
    say: Callable[[str], None],
    roster: Mapping[str, Any] | None = None,
) -> tuple[Run, Coordinator]:
    """Run the federation as Flower's run `run_id`. sign: see `proof`. roster: see `Coordinator`.

    Raises NoTask, and as `Coordinator` does.
    """
    acquirer, until = runtime.acquirer(), time.monotonic() + SECONDS
    while time.monotonic() < until:
        token = _token(acquirer)
        if token is None:
            time.sleep(POLL)
            continue
        grid = needed("flwr.superlink.grid").HttpGrid(
            runtime_api_address=runtime.address,
            insecure=runtime.certificate is None,
            root_certificates=None if runtime.certificate is None else runtime.certificate.read_bytes(),
            token=token,
        )
        grid._retry_invoker.max_tries = TRIES
        with working(grid._runtime_client):
            found = take(grid._runtime_client)
            if found.run.run_id != run_id:
                say(f"a run that was not submitted here is left alone: {found.run.run_id}")
                continue
            grid.set_run(needed("flwr.common.serde").run_from_proto(found.run))
            coordinator = Coordinator(federation, GridLink(grid, federation.terms.sites, sign), folder, say, roster)
            return coordinator.run(), coordinator
    raise NoTask(f"no task of run {run_id} within {SECONDS:g} seconds")


def _token(acquirer: Any) -> str | None:
    """The token of a task; a SuperLink listens a moment before it answers."""
    try:
        return acquire(acquirer, "SERVER_APP")
    except needed("httpx").HTTPError:
        return None

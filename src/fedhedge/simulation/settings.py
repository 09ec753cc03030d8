"""All that a result depends on, as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fedhedge import files
from fedhedge.algorithms.base import Algorithm
from fedhedge.models import Model
from fedhedge.simulation.options import Options

if TYPE_CHECKING:
    from fedhedge.availability import Law
    from fedhedge.data import Clients


def settings(algorithm: Algorithm, model: Model, clients: Clients, law: Law, options: Options) -> dict[str, Any]:
    """The settings that a run of these parts has on record; the law is bound to the number of clients."""
    found: dict[str, Any] = files.plain(
        {
            "algorithm": algorithm.settings(),
            "model": model.settings(),
            "availability": law.bind(len(clients)).settings(),
            "data": clients.description | {"digest": clients.digest(), "clients": len(clients)},
        }
        | options.settings()
    )
    return found

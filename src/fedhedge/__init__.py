"""Federated learning that hedges: against who shows up, what the data may be, and who is watching."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedhedge import algorithms, availability, data, dro, evaluation, models, privacy, report, simulation
    from fedhedge.checks import InvalidInput
    from fedhedge.estimators import FederatedDROClassifier
    from fedhedge.privacy import Privacy
    from fedhedge.simulation import CheckpointMismatch, Diverged, Faults, Run, simulate, sweep

__version__ = "0.1.0"

# Names are resolved on first use, so that `fedhedge --help` does not wait for the numerical libraries.
_HOME = {
    "CheckpointMismatch": "fedhedge.simulation",
    "Diverged": "fedhedge.simulation",
    "Faults": "fedhedge.simulation",
    "FederatedDROClassifier": "fedhedge.estimators",
    "InvalidInput": "fedhedge.checks",
    "Privacy": "fedhedge.privacy",
    "Run": "fedhedge.simulation",
    "simulate": "fedhedge.simulation",
    "sweep": "fedhedge.simulation",
}
_ROOMS = ("algorithms", "availability", "data", "dro", "evaluation", "models", "privacy", "report", "simulation")

__all__ = [
    "CheckpointMismatch",
    "Diverged",
    "Faults",
    "FederatedDROClassifier",
    "InvalidInput",
    "Privacy",
    "Run",
    "algorithms",
    "availability",
    "data",
    "dro",
    "evaluation",
    "models",
    "privacy",
    "report",
    "simulate",
    "simulation",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"fedhedge.{name}")
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'fedhedge' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])

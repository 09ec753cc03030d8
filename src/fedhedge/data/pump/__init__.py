"""Simulated condition monitoring of a triplex pump."""

from fedhedge.data.pump.features import DEFAULT_FEATURES, FEATURES
from fedhedge.data.pump.physics import Plant, Traces, simulate
from fedhedge.data.pump.runs import CLASSES, Runs, draw_runs, load_pump

__all__ = [
    "CLASSES",
    "DEFAULT_FEATURES",
    "FEATURES",
    "Plant",
    "Runs",
    "Traces",
    "draw_runs",
    "load_pump",
    "simulate",
]

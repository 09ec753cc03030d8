"""Simulation: the round loop, the cohort's mini-batches, evaluation, checkpoints."""

from fedhedge.simulation.checkpoint import CheckpointMismatch
from fedhedge.simulation.faults import Faults
from fedhedge.simulation.guard import Diverged
from fedhedge.simulation.one_run import simulate
from fedhedge.simulation.run import Run
from fedhedge.simulation.sweeping import sweep

__all__ = ["CheckpointMismatch", "Diverged", "Faults", "Run", "simulate", "sweep"]

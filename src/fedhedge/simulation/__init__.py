"""Simulation: the round loop, the cohort's mini-batches, evaluation, checkpoints."""

from fedhedge.simulation.checkpoint import CheckpointMismatch
from fedhedge.simulation.driver import simulate
from fedhedge.simulation.faults import Faults
from fedhedge.simulation.guard import Diverged
from fedhedge.simulation.run import Run
from fedhedge.simulation.side_by_side import sweep

__all__ = ["CheckpointMismatch", "Diverged", "Faults", "Run", "simulate", "sweep"]

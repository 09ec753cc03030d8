"""A sweep planned once, in parts that do not depend on where they are computed."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fedhedge.algorithms.base import Algorithm
from fedhedge.models import Model
from fedhedge.simulation.arithmetic import arithmetic
from fedhedge.simulation.driver import Simulation
from fedhedge.simulation.options import Options
from fedhedge.simulation.run import Run
from fedhedge.simulation.side_by_side import parts, run_part, runs_at_once, signature

if TYPE_CHECKING:
    from fedhedge.availability import Law
    from fedhedge.data import Clients


@dataclasses.dataclass(frozen=True, eq=False)
class Sweep:
    """What the runs of a sweep are made of; run k is of method k // len(each) with options each[k % len(each)]."""

    algorithms: Sequence[Algorithm]
    each: Sequence[Options]
    model: Model
    clients: Clients
    law: Law

    def simulation(self, k: int) -> Simulation:
        """Run k before its first round."""
        algorithm = self.algorithms[k // len(self.each)]
        with arithmetic(algorithm.precision):
            return Simulation(algorithm, self.model, self.clients, self.law, self.each[k % len(self.each)])

    def parts(self) -> tuple[list[list[int]], Simulation]:
        """Runs that are computed together, and one of them; warns of what a method's settings cannot do.

        Seeds differ in nothing that matters here, so that one run of each method is set up, and dropped again.
        """
        groups: dict[Any, list[int]] = {}
        sizes: dict[Any, int] = {}
        for first in range(0, len(self.algorithms) * len(self.each), len(self.each)):
            one = self.simulation(first)
            for text in one.warned:
                warnings.warn(f"{one.algorithm.name}: {text}", stacklevel=3)
            key = signature(one)
            groups.setdefault(key, []).extend(range(first, first + len(self.each)))
            sizes[key] = runs_at_once(one)
        found = []
        for key, group in groups.items():
            seeds = [self.each[k % len(self.each)].seed for k in group]
            found += [[group[at] for at in part] for part in parts(seeds, sizes[key])]
        return found, one

    def runs(self, part: Sequence[int]) -> list[Run]:
        """The runs of one part, in its order."""
        simulations = [self.simulation(k) for k in part]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            run_part(simulations)
        return [simulation.result() for simulation in simulations]

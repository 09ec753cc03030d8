"""The methods of the FedeRage paper's Table I, and what its sweep chooses from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedhedge.algorithms import FedAvg, FedeRage, FedProx, Scaffold
from fedhedge.experiments.search import Candidate, Stage, grid

LOCAL_STEPS = 5
_STEPS = grid(*({"step": step} for step in (0.03, 0.1, 0.3)))
_LOCAL_STEPS = grid(*({"local_steps": steps} for steps in (2, 5, 10)))
# (alpha, gamma); the step starts at 0.1/kappa for each.
_TAILS = ((0.01, 0.1), (0.05, 0.25), (0.05, 0.75), (0.1, 0.5), (0.2, 0.75))


@dataclass(frozen=True)
class Method:
    """One line of the table. after: the method whose choice of step and local steps is where its search starts."""

    name: str
    start: Candidate
    stages: Sequence[Stage]
    after: str | None = None


def _tail_steps(best: Candidate) -> list[Candidate]:
    kappa = best.algorithm.kappa  # type: ignore[attr-defined]
    return [best.varied({"step": scaled / kappa}) for scaled in (0.05, 0.1, 0.2)]


METHODS = (
    Method("FedAvg", Candidate(FedAvg(step=0.1), LOCAL_STEPS), (_STEPS, _LOCAL_STEPS, _STEPS)),
    Method(
        "FedProx",
        Candidate(FedProx(step=0.1), LOCAL_STEPS),
        (grid(*({"mu": mu} for mu in (0.001, 0.01, 0.1))),),
        after="FedAvg",
    ),
    Method("SCAFFOLD", Candidate(Scaffold(step=0.1), LOCAL_STEPS), (_STEPS, _LOCAL_STEPS, _STEPS)),
    Method(
        "FedeRage",
        Candidate(FedeRage(), LOCAL_STEPS),
        (
            grid(*({"alpha": alpha, "gamma": gamma, "step": None} for alpha, gamma in _TAILS)),
            _tail_steps,
            _LOCAL_STEPS,
            grid(*({"beta_step": step} for step in (0.002, 0.005, 0.02))),
        ),
    ),
)

"""A sweep of work W1 on two cores against two plain PyTorch loops side by side.

    make bench BENCH=spread

Work: 20 step sizes x 5 seeds of W1 (an MLP of 199,210 weights, see work.py), 500 rounds each, by `fh.sweep` with two
processes. Its time is that of the whole call: starting the processes, compiling, and all runs. The loops are two
processes of one thread, each pinned to a core, that train at the same time; a loop has no start-up to spread over its
rounds, so that rounds per second compare. They run before and after, so that a drifting machine hurts both.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from results import Results, options
from turns import Contender, race
from work import BATCH, CLIENTS, COHORT, MLP, STEPS, table

import fedhedge as fh

CORES = (0, 1)
LEAST, MOST = 0.02, 0.2
AT_LEAST = 2.5
LOOP = {"plain PyTorch loop": ("torch", "contender_torch.py", "--rounds", "300")}


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--environments", type=Path, default=Path(".venv-bench"), metavar="DIR")
    parser.add_argument("--configurations", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--turns", type=int, default=3, help="of the loops, before and again after")
    given = parser.parse_args()
    if given.quick:
        given.configurations, given.seeds, given.rounds, given.turns = 2, 1, 20, 1
    runs = given.configurations * given.seeds
    results = Results.of("A sweep over processes", given)
    with ExitStack() as stack:
        loops: list[Contender] = []
        for core in CORES:
            running, missing = stack.enter_context(race(LOOP, given.environments, [core]))
            loops += running.values()
            for label, why in missing.items():
                raise SystemExit(f"{label}: {why}")
        both = side_by_side(loops, given.turns)
        seconds = ours(given.configurations, given.seeds, given.rounds)
        both += side_by_side(loops, given.turns)
    rate = runs * given.rounds / seconds
    results.add(f"fedhedge, {runs} runs of {given.rounds} rounds on {len(CORES)} cores", seconds, "s")
    results.add("fedhedge, start-up and compilation included", rate, "rounds/s")
    results.add("two plain PyTorch loops side by side", both, "rounds/s")
    results.add("fedhedge / two loops", [rate / peer for peer in both], "×", at_least=AT_LEAST)
    results.remark(f"{loops[0].name}; fedhedge {fh.__version__}.")
    results.write()


def side_by_side(loops: Sequence[Contender], turns: int) -> list[float]:
    """Rounds per second of all loops together, in each turn."""
    found = []
    with ThreadPoolExecutor(len(loops)) as threads:
        for _ in range(turns):
            list(threads.map(Contender.turn, loops))
            found.append(sum(loop.turns[-1]["rounds_per_second"] for loop in loops))
    return found


def ours(configurations: int, seeds: int, rounds: int) -> float:
    """Seconds that the sweep takes."""
    features, labels = table(MLP)
    clients = fh.data.Clients.from_splits((features, labels, np.repeat(np.arange(CLIENTS), MLP.rows)))
    methods = [fh.algorithms.FedAvg(step=float(step)) for step in np.geomspace(LEAST, MOST, configurations)]
    begun = time.perf_counter()
    fh.sweep(
        methods, fh.models.MLP(hidden=MLP.widths[1:-1]), clients, fh.availability.FixedSize(size=COHORT),
        seeds=range(seeds), n_jobs=len(CORES), rounds=rounds, local_steps=STEPS, batch_size=BATCH,
        evaluate_every=rounds, evaluate_on=(),
    )  # fmt: skip
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()

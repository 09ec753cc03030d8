"""Time of a simulated pump run on one core.

    make bench BENCH=pump
    taskset -c 0 python benchmarks/pump.py [--runs 1024]

Compared with a first vectorised NumPy version of the same equations, 16 ms a run. Processor time, so that other work on
the machine does not count; compilation is left out and told apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from results import Results, options

from fedhedge.data.pump import draw_runs, load_pump, simulate
from fedhedge.data.pump.features import compute
from fedhedge.data.pump.runs import BLOCK

# Milliseconds a run.
FIRST_VERSION = 16.0
TIMES_AT_LEAST = 10.0
REPEATS = 5


def milliseconds(work: Callable[[], object], runs: int) -> list[float]:
    """Processor times of a few repeats, ms a run."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        times.append(1e3 * (time.process_time() - start) / runs)
    return times


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--runs", type=int, default=8 * BLOCK, help=f"rounded up to a multiple of {BLOCK}")
    given = parser.parse_args()
    runs = BLOCK if given.quick else -(-given.runs // BLOCK) * BLOCK
    results = Results.of("The pump simulator", given)

    start = time.process_time()
    block = draw_runs(BLOCK)
    flow = simulate(block.plant, block.angle).flow + block.noise
    results.add(f"first block of {BLOCK} runs, with compilation", time.process_time() - start, "s")
    results.add("draws", milliseconds(lambda: draw_runs(BLOCK), BLOCK), "ms a run")
    results.add("simulation", milliseconds(lambda: simulate(block.plant, block.angle), BLOCK), "ms a run")
    results.add("features", milliseconds(lambda: compute(flow), BLOCK), "ms a run")
    total = results.add(f"load_pump({runs})", milliseconds(lambda: load_pump(runs), runs), "ms a run")
    results.add("first version / load_pump", FIRST_VERSION / total, "×", at_least=TIMES_AT_LEAST)
    results.remark(f"The first version, vectorised NumPy, took {FIRST_VERSION:g} ms a run; it is not measured anew.")
    results.write()


if __name__ == "__main__":
    main()

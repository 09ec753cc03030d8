"""Time of a simulated pump run on one core: python benchmarks/pump.py [--runs 1024] (pin it with taskset -c 0).

Compared with a first vectorised NumPy version of the same equations, 16 ms a run. Processor time, so that other work on
the machine does not count; compilation is left out and told apart.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from fedhedge.data.pump import draw_runs, load_pump, simulate
from fedhedge.data.pump.features import compute
from fedhedge.data.pump.runs import BLOCK

FIRST_VERSION = 16.0
REPEATS = 3


def milliseconds(work: Callable[[], object], runs: int) -> float:
    """Least processor time of a few repeats, ms a run."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return 1e3 * min(times) / runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=8 * BLOCK, help=f"rounded up to a multiple of {BLOCK}")
    runs = -(-parser.parse_args().runs // BLOCK) * BLOCK

    start = time.process_time()
    block = draw_runs(BLOCK)
    flow = simulate(block.plant, block.angle).flow + block.noise
    print(f"first block of {BLOCK} runs, with compilation: {time.process_time() - start:.1f} s")
    print(f"draws:       {milliseconds(lambda: draw_runs(BLOCK), BLOCK):6.3f} ms a run")
    print(f"simulation:  {milliseconds(lambda: simulate(block.plant, block.angle), BLOCK):6.3f} ms a run")
    print(f"features:    {milliseconds(lambda: compute(flow), BLOCK):6.3f} ms a run")
    total = milliseconds(lambda: load_pump(runs), runs)
    print(f"load_pump({runs}): {total:.3f} ms a run, {FIRST_VERSION / total:.1f} times as fast as the first version")


if __name__ == "__main__":
    main()

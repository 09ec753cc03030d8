"""Start-up: `fedhedge --help`, and the time to the first result of `fedhedge demo`.

    make bench BENCH=startup

Wall time of whole processes. The first result is the first saved run of the demonstration. Cold: nothing compiled is on
disk; warm: what the process before has compiled is.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from results import Results, options

BIN = Path(sys.executable).parent
FEDHEDGE = str(BIN / "fedhedge")
HELP_AT_MOST, FIRST_AT_MOST = 0.3, 20.0
PATIENCE = 300.0


def seconds(command: list[str]) -> float:
    """Wall time of a process."""
    begun = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


def demo(compiled: Path, to_the_end: bool) -> tuple[float, float]:
    """Seconds until the first saved run, and until the demonstration ends or is stopped."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        process = subprocess.Popen(
            [FEDHEDGE, "demo", "--quiet", "--out", folder],
            env=os.environ | {"JAX_COMPILATION_CACHE_DIR": str(compiled)},
        )
        try:
            while not any(Path(folder).glob("*/run.npz")):
                if process.poll() is not None or time.perf_counter() - begun > PATIENCE:
                    raise RuntimeError("the demonstration gave no result")
                time.sleep(0.02)
            first = time.perf_counter() - begun
            if to_the_end:
                process.wait()
            return first, time.perf_counter() - begun
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait()


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--turns", type=int, default=11)
    given = parser.parse_args()
    turns, demos = (1, 1) if given.quick else (given.turns, 3)
    results = Results.of("Start-up", given)

    commands = {
        "Python alone": [sys.executable, "-c", "pass"],
        "fedhedge --help": [FEDHEDGE, "--help"],
        "import jax": [sys.executable, "-c", "import jax"],
    }
    for command in commands.values():
        seconds(command)
    times = [[seconds(command) for command in commands.values()] for _ in range(turns)]
    for label, column in zip(commands, zip(*times, strict=True), strict=True):
        target = {"at_most": HELP_AT_MOST} if "--help" in label else {}
        results.add(label, column, "s", **target)

    cold, warm, whole = [], [], 0.0
    for number in range(demos):
        with tempfile.TemporaryDirectory() as folder:
            last = number == demos - 1 and not given.quick
            cold.append(demo(Path(folder), to_the_end=False)[0])
            first, whole = demo(Path(folder), to_the_end=last)
            warm.append(first)
    results.add("first result of fedhedge demo, cold", cold, "s", at_most=FIRST_AT_MOST)
    results.add("first result of fedhedge demo, warm", warm, "s", at_most=FIRST_AT_MOST)
    if not given.quick:
        results.add("the whole demonstration (20 runs and the report), warm", whole, "s")
    results.write()


if __name__ == "__main__":
    main()

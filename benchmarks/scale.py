"""How rounds per second and memory grow with the number of clients N, up to 100,000.

    make bench BENCH=scale

Softmax regression on 20 features and 10 classes, 10 rows a client, 5 local steps on batches of 8; 100 clients get
through in a round, or 1 % of all of them by chance. FedAvg keeps nothing at clients; SCAFFOLD keeps 210 numbers, in
memory or on disk. Each line is a process of its own, on one thread: rounds per second of processor time, start-up and
compilation apart, and the largest resident memory beyond that of the same process before it had made its data. A client
that comes is one of more, whose row is less often in the cache: that is all that may grow.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from results import Results, options

SIZES = (100, 10_000, 100_000)
FEATURES, CLASSES, ROWS, COHORT, SHARE = 20, 10, 10, 100, 0.01
DATA = ROWS * (FEATURES + 3) * 4
STATE = (FEATURES + 1) * CLASSES * 4
CASES = {
    f"FedAvg, {COHORT} clients a round": ("FedAvg", "fixed", ""),
    f"Scaffold, {COHORT} clients a round": ("Scaffold", "fixed", ""),
    f"Scaffold, {COHORT} clients a round, states on disk": ("Scaffold", "fixed", "disk"),
    "FedAvg, 1 % by chance": ("FedAvg", "share", ""),
    "Scaffold, 1 % by chance": ("Scaffold", "share", ""),
}
# Of the rounds per second with the fewest clients, for the same cohort.
AT_LEAST = 0.8


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(**json.loads(given.one))))
        return
    sizes, rounds, turns = (SIZES[:2], 50, 1) if given.quick else (SIZES, given.rounds, given.turns)
    results = Results.of("From a hundred to a hundred thousand clients", given)
    for title, (method, law, states) in CASES.items():
        rates: dict[int, list[float]] = {}
        for clients in sizes:
            asked = {"method": method, "law": law, "states": states}
            found = answer(asked | {"clients": clients, "rounds": rounds, "turns": turns})
            rates[clients] = found["rates"]
            results.add(f"{title}, N = {clients:,}", rates[clients], "rounds/s")
            kept = DATA + (STATE if method == "Scaffold" and not states else 0)
            results.add(f"  memory (data and states: {kept * clients / 2**20:,.1f} MiB)", found["memory"], "MiB")
        if law == "fixed":
            ratio = [rate / float(np.median(rates[sizes[0]])) for rate in rates[sizes[-1]]]
            label = f"  of the rounds per second at N = {sizes[0]}"
            results.add(label, ratio, "×", **({} if states else {"at_least": AT_LEAST}))
    results.write()


def answer(asked: dict[str, object]) -> dict[str, list[float]]:
    """What a process of its own finds."""
    command = [sys.executable, str(Path(__file__)), "--one", json.dumps(asked)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=os.environ | {"PJRT_NPROC": "1"})
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def one(method: str, law: str, states: str, clients: int, rounds: int, turns: int) -> dict[str, object]:
    import jax

    import fedhedge as fh
    from fedhedge.simulation.driver import Simulation
    from fedhedge.simulation.options import Options

    def run(number: int, folder: Path | None) -> list[float]:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((number * ROWS, FEATURES), np.float32)
        y = np.argmax(X @ rng.standard_normal((FEATURES, CLASSES), np.float32), axis=1)
        data = fh.data.Clients.from_splits((X, y, np.repeat(np.arange(number), ROWS)))
        del X, y
        size = min(COHORT, number)
        chosen = fh.availability.FixedSize(size=size) if law == "fixed" else fh.availability.Independent(SHARE)
        algorithm = getattr(fh.algorithms, method)(step=0.05)
        settings = Options(rounds, 5, 8, evaluate_every=rounds, evaluate_on=())
        simulation = Simulation(algorithm, fh.models.Linear(), data, chosen, settings, folder)
        found = []
        for _ in range(turns + 1):
            # Or the states of this turn would be made beside those of the last.
            del simulation.state
            simulation.begin()
            begun = time.process_time()
            simulation.run(None, resume=False, progress=False)
            jax.block_until_ready(simulation.state)
            found.append(rounds / (time.process_time() - begun))
        return found[1:]

    with tempfile.TemporaryDirectory() as folder:
        on_disk = Path(folder) if states else None
        # The same with few clients: what Python, JAX and compilation take.
        run(SIZES[0], on_disk)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        rates = run(clients, on_disk)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"rates": rates, "memory": grown / 1024}


if __name__ == "__main__":
    main()

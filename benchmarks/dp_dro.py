"""Time of a DP-Fed DRO run against DP-Fed ERM, 100 seeds side by side.

    make bench BENCH=dp_dro

T = 150 rounds over 4 clients of 400 rows, P = 13, K = 4, all clients in each round, through `fh.sweep`. The two methods
run in turns; processor time on one core, compilation apart.
"""

from __future__ import annotations

import time

import numpy as np
from dro_solver import CLIENTS, client_rows
from results import Results, options

import fedhedge as fh
from fedhedge.algorithms import Algorithm, DpDroAdmm, DpErmAdmm

ROWS, FEATURES, CLASSES, ROUNDS = 400, 13, 4, 150
BUDGET = {"epsilon": 4.0, "delta": 1e-5}
AT_MOST_MS, AT_MOST_ERM = 30.0, 1.5


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--turns", type=int, default=5)
    given = parser.parse_args()
    seeds, turns = (4, 1) if given.quick else (given.seeds, given.turns)
    results = Results.of("Private robust training, seeds side by side", given)
    tables = [client_rows(seed, ROWS, FEATURES, CLASSES) for seed in range(CLIENTS)]
    X, y = (np.concatenate(column) for column in zip(*tables, strict=True))
    clients = fh.data.Clients.from_splits((X, y, np.repeat(np.arange(CLIENTS), ROWS)))
    privacy = fh.Privacy(**BUDGET)
    methods: dict[str, Algorithm] = {
        "DP-Fed DRO": DpDroAdmm.calibrated(privacy, ROUNDS),
        "DP-Fed ERM": DpErmAdmm.calibrated(privacy, ROUNDS),
    }

    def milliseconds(method: Algorithm, seeds: int) -> float:
        begun = time.process_time()
        fh.sweep(
            method,
            fh.models.CrammerSinger(),
            clients,
            fh.availability.Everyone(),
            seeds=range(seeds),
            rounds=ROUNDS,
            local_steps=1,
            batch_size=None,
            evaluate_every=ROUNDS,
            evaluate_on=(),
        )
        return 1e3 * (time.process_time() - begun) / seeds

    first = {name: milliseconds(method, seeds) for name, method in methods.items()}
    times = [[milliseconds(method, seeds) for method in methods.values()] for _ in range(turns)]
    robust, plain = zip(*times, strict=True)
    results.add(f"DP-Fed DRO, {seeds} seeds side by side", robust, "ms a run", at_most=AT_MOST_MS)
    results.add(f"DP-Fed ERM, {seeds} seeds side by side", plain, "ms a run")
    ratios = [a / b for a, b in times]
    results.add("DP-Fed DRO / DP-Fed ERM", ratios, "×", at_most=AT_MOST_ERM)
    results.add("DP-Fed DRO with compilation", first["DP-Fed DRO"], "ms a run")
    results.write()


if __name__ == "__main__":
    main()

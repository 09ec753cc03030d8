"""Rounds per second of work W1 against plain PyTorch loops, pfl, BlazeFL and Flower's simulation.

    make bench BENCH=rounds

Work: MLP 784-200-200-10 (199,210 weights), 30 clients of whom 3 get through, 5 local steps, batches of 32, FedAvg.
All draw mini-batches without replacement, average the models, and must have learnt something at the end of a turn.
On one core, all processes are pinned to it and compute on one thread; then on two, with two threads or one. Start-up
and compilation come first and are not counted. Contenders run in turns; ratios are medians of the ratios of the same
turn.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from results import Results, options
from turns import Contender, Failed, race
from work import FLOPS

OURS, PLAIN, FLOWER = "fedhedge", "plain PyTorch loop", "Flower's simulation"
RATE = "rounds_per_second"
# The contenders: environment, script, and the rounds of a turn.
ENTRIES = {
    OURS: ("torch", "contender_fedhedge.py", "--rounds", "500"),
    PLAIN: ("torch", "contender_torch.py", "--rounds", "200"),
    "PyTorch by hand": ("torch", "contender_torch.py", "--rounds", "200", "--by-hand"),
    "pfl": ("pfl", "contender_pfl.py", "--rounds", "150"),
    "BlazeFL, threads": ("blazefl", "contender_blazefl.py", "--rounds", "150"),
    FLOWER: ("flower", "contender_flower.py", "--rounds", "20"),
    "Flower, polling shortened": ("flower", "contender_flower.py", "--rounds", "20", "--polling", "0.005"),
}
# On two cores, layers as small as these may be quicker on one thread.
ONE_THREAD = {
    f"{label}, one thread": (*ENTRIES[label], "--threads", "1") for label in (PLAIN, "PyTorch by hand", "pfl")
}
QUICK = ("--rounds", "30")
# Flower starts its actors anew in each turn, which takes longer than the rounds.
FLOWER_TURNS = 2
BEST_AT_LEAST = {1: 2.5, 2: 3.5}
FLOWER_AT_LEAST = 35.0
PEAK_SHARE = 60.0


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--environments", type=Path, default=Path(".venv-bench"), metavar="DIR")
    parser.add_argument("--turns", type=int, default=5)
    given = parser.parse_args()
    results = Results.of("Work W1: rounds per second of one run", given)
    for cores in ((0,), (0, 1)):
        entries = ENTRIES if len(cores) == 1 else ENTRIES | ONE_THREAD
        if given.quick:
            entries = {label: (*entry, *QUICK) for label, entry in entries.items()}
        measure(entries, given.environments, cores, 1 if given.quick else given.turns, results)
    results.write()


def measure(
    entries: dict[str, tuple[str, ...]], environments: Path, cores: Sequence[int], turns: int, results: Results
) -> None:
    where = f"{len(cores)} core{'s' if len(cores) > 1 else ''}"
    with race(entries, environments, cores) as (running, missing):
        for number in range(turns):
            for label, contender in list(running.items()):
                if label.startswith("Flower") and number >= FLOWER_TURNS:
                    continue
                try:
                    contender.turn()
                except Failed as failure:
                    missing[label] = str(failure)
                    del running[label]
        for label, contender in running.items():
            results.add(f"{label}, {where}", rates(contender), "rounds/s")
        ours = running.pop(OURS)
        share = [100 * FLOPS * turn[RATE] / 1e9 / turn["peak_gflops"] for turn in ours.turns]
        results.add(f"of the peak of a matrix product, {where}", share, "%", at_least=PEAK_SHARE)
        for label, contender in running.items():
            target = {"at_least": FLOWER_AT_LEAST} if label == FLOWER else {}
            results.add(f"fedhedge / {label}, {where}", ratios(ours, contender), "×", **target)
        peers = [contender for label, contender in running.items() if not label.startswith("Flower")]
        best = max(peers, key=lambda contender: statistics.median(rates(contender)))
        wanted = BEST_AT_LEAST[len(cores)]
        results.add(f"fedhedge / best peer ({best.label}), {where}", ratios(ours, best), "×", at_least=wanted)
        names = ", ".join(sorted({contender.name for contender in [ours, *running.values()]}))
        results.remark(f"{where}: {names}.")
    for label, why in missing.items():
        results.remark(f"{where}: {label} left out: {why}")


def rates(contender: Contender) -> list[float]:
    return [turn[RATE] for turn in contender.turns]


def ratios(ours: Contender, other: Contender) -> list[float]:
    return [a / b for a, b in zip(rates(ours), rates(other), strict=False)]


if __name__ == "__main__":
    main()

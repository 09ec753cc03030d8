"""Rounds per second of a small CNN on images of CIFAR-10's shape against a plain PyTorch loop, on one core and on two.

    make bench BENCH=cnn

Two blocks of 3x3 convolution (32 and 64 channels), ReLU and max-pooling, then 128 hidden units; 545,098 weights. The
rounds are those of W1. Contenders run in turns, as in rounds.py.
"""

from __future__ import annotations

from pathlib import Path

from results import Results, options
from rounds import OURS, PLAIN, rates, ratios
from turns import race

AT_LEAST = 0.7


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--environments", type=Path, default=Path(".venv-bench"), metavar="DIR")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=12, help="rounds in one turn")
    given = parser.parse_args()
    results = Results.of("A small CNN on images of CIFAR-10's shape", given)
    rounds = ("--work", "cnn", "--rounds", str(given.rounds))
    entries = {
        OURS: ("torch", "contender_fedhedge.py", *rounds),
        PLAIN: ("torch", "contender_torch.py", *rounds),
    }
    for cores in ((0,), (0, 1)):
        where = f"{len(cores)} core{'s' if len(cores) > 1 else ''}"
        with race(entries, given.environments, cores) as (running, missing):
            for label, why in missing.items():
                results.remark(f"{where}: {label} left out: {why}")
            if missing:
                continue
            for _ in range(1 if given.quick else given.turns):
                for contender in running.values():
                    contender.turn()
            for label, contender in running.items():
                results.add(f"{label}, {where}", rates(contender), "rounds/s")
            target = {"at_least": AT_LEAST} if len(cores) == 1 else {}
            results.add(f"fedhedge / {PLAIN}, {where}", ratios(running[OURS], running[PLAIN]), "×", **target)
    results.write()


if __name__ == "__main__":
    main()

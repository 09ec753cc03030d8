"""Turns of a plain PyTorch loop: python contender_torch.py [--work cnn] [--by-hand] [--rounds 200]"""

from __future__ import annotations

import argparse
import os
import time

import torch
from peers import Loop
from turns import falling, serve
from work import WORKS, cohorts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", choices=WORKS, default="mlp")
    parser.add_argument("--by-hand", action="store_true")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="default: one for each core")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    loop = Loop(WORKS[given.work])
    train = loop.tuned if given.by_hand else loop.plain

    def turn() -> dict[str, float]:
        loop.model.load_state_dict(loop.fresh)
        before, present = loop.loss(), cohorts(loop.rng, given.rounds)
        begun = time.perf_counter()
        train(present)
        seconds = time.perf_counter() - begun
        return {"rounds_per_second": given.rounds / seconds} | falling(before, loop.loss())

    serve(f"PyTorch {torch.__version__}", turn)


if __name__ == "__main__":
    main()

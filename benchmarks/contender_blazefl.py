"""Turns of BlazeFL's FedAvg on work W1, its clients on threads: python contender_blazefl.py [--rounds 150]

One thread of clients for each core that the process may use. Mini-batches come as five indices of the client's rows,
not through PyTorch's DataLoader, which would cost more than the training.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import time
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import torch
from blazefl.contrib.fedavg import FedAvgBaseServerHandler, FedAvgThreadPoolClientTrainer
from peers import Loop, network
from turns import falling, serve
from work import BATCH, CLIENTS, COHORT, MLP, STEPS


class Name(StrEnum):
    MLP = "mlp"


class Networks:
    """BlazeFL makes a client's model anew in each round."""

    def select_model(self, model_name: str) -> torch.nn.Module:
        return network(MLP)


class Batches:
    """Five mini-batches of a client's rows."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop

    def get_dataloader(self, type_: Any, cid: int, batch_size: int, generator: torch.Generator) -> Iterator[Any]:
        for _ in range(STEPS):
            index = cid * MLP.rows + torch.randperm(MLP.rows, generator=generator)[:batch_size]
            yield self.loop.features[index], self.loop.labels[index]


class Trainer(FedAvgThreadPoolClientTrainer):
    """Without a bar for every round."""

    def progress_fn(self, it: list[Any]) -> list[Any]:
        return it


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=150)
    given = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    # Its parallelism is over clients: one thread of arithmetic for each.
    torch.set_num_threads(1)
    loop = Loop(MLP)
    data: Any = Batches(loop)
    common = {"model_selector": Networks(), "model_name": Name.MLP, "dataset": data, "device": "cpu", "seed": 0}
    trainer = Trainer(num_clients=CLIENTS, epochs=1, batch_size=BATCH, lr=MLP.step_size, num_parallels=cores, **common)

    def turn() -> dict[str, float]:
        server = FedAvgBaseServerHandler(
            global_round=given.rounds, num_clients=CLIENTS, sample_ratio=COHORT / CLIENTS, batch_size=BATCH, **common
        )
        loop.model.load_state_dict(loop.fresh)
        server.model, before = loop.model, loop.loss()
        begun = time.perf_counter()
        while not server.if_stop():
            trainer.local_process(server.downlink_package(), server.sample_clients())
            for upload in trainer.uplink_package():
                server.load(upload)
        seconds = time.perf_counter() - begun
        return {"rounds_per_second": given.rounds / seconds} | falling(before, loop.loss())

    serve(f"BlazeFL {importlib.metadata.version('blazefl')}", turn)


if __name__ == "__main__":
    main()

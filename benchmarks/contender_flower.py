"""Turns of Flower's simulation on work W1: python contender_flower.py [--rounds 20] [--polling 0.005]

One actor for each core that the process may use. The first rounds, in which actors start and make their data, are not
timed. --polling: seconds between two looks of the server at its replies, where Flower has 0.1.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import tempfile
import time
from collections.abc import Iterable
from typing import Any

from flower_client import app
from flwr.app import ArrayRecord, Context, Message
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from peers import Loop
from turns import falling, serve
from work import CLIENTS, COHORT, MLP

UNTIMED = 3


class Timed(FedAvg):
    """Federated averaging that looks at the clock after each round."""

    def __init__(self) -> None:
        super().__init__(
            fraction_train=COHORT / CLIENTS,
            fraction_evaluate=0.0,
            min_train_nodes=COHORT,
            min_available_nodes=CLIENTS,
        )
        self.ends: list[float] = []

    def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
        taken = list(replies)
        if len(taken) != COHORT or any(reply.has_error() for reply in taken):
            raise RuntimeError(f"{len(taken)} replies in round {server_round}")
        averaged = super().aggregate_train(server_round, taken)
        self.ends.append(time.perf_counter())
        return averaged


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--polling", type=float)
    given = parser.parse_args()
    loop = Loop(MLP)
    cores = len(os.sched_getaffinity(0))

    def turn() -> dict[str, float]:
        loop.model.load_state_dict(loop.fresh)
        before, strategy, server = loop.loss(), Timed(), ServerApp()

        @server.main()
        def serverside(grid: Grid, context: Context) -> None:
            if given.polling is not None:
                grid.pull_interval = given.polling
            arrays = ArrayRecord(loop.model.state_dict())
            found = strategy.start(grid, arrays, num_rounds=given.rounds + UNTIMED)
            loop.model.load_state_dict(found.arrays.to_torch_state_dict())

        with tempfile.TemporaryDirectory(prefix="ray-") as folder:
            run_simulation(
                server_app=server,
                client_app=app,
                num_supernodes=CLIENTS,
                backend_config={
                    "init_args": {"num_cpus": cores, "log_to_driver": False, "_temp_dir": folder},
                    "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
                },
            )
        seconds = strategy.ends[-1] - strategy.ends[UNTIMED - 1]
        return {"rounds_per_second": given.rounds / seconds} | falling(before, loop.loss())

    serve(f"Flower {importlib.metadata.version('flwr')}", turn, warmed=False)


if __name__ == "__main__":
    main()

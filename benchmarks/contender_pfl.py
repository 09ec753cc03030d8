"""Turns of pfl's simulated backend on work W1, in one process: python contender_pfl.py [--rounds 150]

Each user's data set is drawn anew when it is visited: 5 mini-batches of 32 of the client's rows, in one index, which is
less work than the five draws of the others.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import time
from typing import Any

import numpy as np
import torch
from peers import Loop
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.hyperparam import NNTrainHyperParams
from pfl.metrics import Weighted
from pfl.model.pytorch import PyTorchModel
from turns import falling, serve
from work import BATCH, CLIENTS, COHORT, MLP, STEPS


class Trained(torch.nn.Module):
    """The network with the two methods that pfl asks for."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network, self.criterion = network, torch.nn.CrossEntropyLoss()

    def loss(self, features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return self.criterion(self.network(features), labels)

    def metrics(self, features: torch.Tensor, labels: torch.Tensor) -> dict[str, Any]:
        return {"loss": Weighted(float(self.loss(features, labels)) * len(labels), len(labels))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="default: one for each core")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    loop = Loop(MLP)
    rng = np.random.default_rng(2)

    def rows_of(user: int) -> Dataset:
        index = torch.from_numpy(user * MLP.rows + rng.choice(MLP.rows, STEPS * BATCH, replace=False))
        return PyTorchTensorDataset((loop.features[index], loop.labels[index]), user_id=str(user))

    cohort: list[int] = []

    def next_user() -> int:
        if not cohort:
            cohort.extend(rng.choice(CLIENTS, COHORT, replace=False).tolist())
        return cohort.pop()

    users = FederatedDataset(rows_of, next_user)
    trained = Trained(loop.model)
    train = NNTrainHyperParams(
        local_num_epochs=None, local_num_steps=STEPS, local_batch_size=BATCH, local_learning_rate=MLP.step_size
    )
    rounds = NNAlgorithmParams(
        central_num_iterations=given.rounds,
        evaluation_frequency=10 * given.rounds,
        train_cohort_size=COHORT,
        val_cohort_size=0,
    )

    def turn() -> dict[str, float]:
        loop.model.load_state_dict(loop.fresh)
        before = loop.loss()
        server = torch.optim.SGD(trained.parameters(), lr=1.0)
        model = PyTorchModel(trained, local_optimizer_create=torch.optim.SGD, central_optimizer=server)
        backend = SimulatedBackend(training_data=users, val_data=users)
        begun = time.perf_counter()
        FederatedAveraging().run(rounds, backend, model, train, send_metrics_to_platform=False)
        seconds = time.perf_counter() - begun
        return {"rounds_per_second": given.rounds / seconds} | falling(before, loop.loss())

    serve(f"pfl {importlib.metadata.version('pfl')}", turn)


if __name__ == "__main__":
    main()

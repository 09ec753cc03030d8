"""Plain PyTorch loops: federated averaging as one writes it, and by hand."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import torch
from work import CLIENTS, STEPS, Work, batch, table

SAMPLE = 2000


def network(work: Work) -> torch.nn.Sequential:
    """The model of a work, weights as PyTorch starts them."""
    layers: list[torch.nn.Module] = []
    inputs = work.shape[-1]
    for outputs in work.channels:
        layers += [torch.nn.Conv2d(inputs, outputs, 3, padding="same"), torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
        inputs = outputs
    layers += [torch.nn.Flatten()] if work.channels else []
    for fan_in, fan_out in itertools.pairwise(work.widths):
        layers += [torch.nn.Linear(fan_in, fan_out), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def tensors(work: Work) -> tuple[torch.Tensor, torch.Tensor]:
    """Features, images with their channels first, and labels."""
    features, labels = map(torch.from_numpy, table(work))
    return (features.permute(0, 3, 1, 2).contiguous() if work.channels else features), labels


class Loop:
    """Federated averaging of one model over the clients of a work."""

    def __init__(self, work: Work) -> None:
        self.work, self.rng = work, np.random.default_rng(1)
        self.features, self.labels = tensors(work)
        self.model, self.criterion = network(work), torch.nn.CrossEntropyLoss()
        self.fresh = {name: value.clone() for name, value in self.model.state_dict().items()}

    def loss_of(self, client: int) -> torch.Tensor:
        """Loss of a fresh mini-batch."""
        index = torch.from_numpy(batch(self.rng, self.work, client))
        return self.criterion(self.model(self.features[index]), self.labels[index])

    def loss(self) -> float:
        """Loss on some rows of all clients."""
        step = CLIENTS * self.work.rows // SAMPLE
        with torch.no_grad():
            return float(self.criterion(self.model(self.features[::step]), self.labels[::step]))

    def plain(self, cohorts: Sequence[np.ndarray]) -> None:
        """As one writes it: an optimiser, backward(), state dictionaries averaged key by key."""
        model = self.model
        server = {name: value.clone() for name, value in model.state_dict().items()}
        for cohort in cohorts:
            uploads = []
            for client in cohort:
                model.load_state_dict(server)
                optimiser = torch.optim.SGD(model.parameters(), lr=self.work.step_size)
                for _ in range(STEPS):
                    optimiser.zero_grad()
                    self.loss_of(client).backward()
                    optimiser.step()
                uploads.append({name: value.clone() for name, value in model.state_dict().items()})
            server = {name: torch.stack([upload[name] for upload in uploads]).mean(0) for name in server}
        model.load_state_dict(server)

    def tuned(self, cohorts: Sequence[np.ndarray]) -> None:
        """By hand: gradients without an optimiser, everything in place."""
        parameters = list(self.model.parameters())
        server = [p.detach().clone() for p in parameters]
        for cohort in cohorts:
            total = [torch.zeros_like(p) for p in server]
            for client in cohort:
                with torch.no_grad():
                    for p, s in zip(parameters, server, strict=True):
                        p.copy_(s)
                for _ in range(STEPS):
                    gradient = torch.autograd.grad(self.loss_of(client), parameters)
                    for p, g in zip(parameters, gradient, strict=True):
                        p.data.sub_(g, alpha=self.work.step_size)
                for t, p in zip(total, parameters, strict=True):
                    t.add_(p.data)
            server = [t.div_(len(cohort)) for t in total]
        with torch.no_grad():
            for p, s in zip(parameters, server, strict=True):
                p.copy_(s)

"""Rounds per second of a simulation against a plain PyTorch loop that does the same work, in the same process.

    python -m venv .venv-bench && .venv-bench/bin/pip install torch==2.13.0 -e .
    taskset -c 0 .venv-bench/bin/python benchmarks/rounds.py

Work: MLP 784-200-200-10 (199,210 weights), 30 clients of whom 3 get through, 5 local steps, batches of 32, FedAvg.
Both draw mini-batches without replacement and average the models. Compilation is measured apart. The contenders
run in turns, and medians are printed, so that a drifting machine hurts all.
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import statistics
import time

ARGUMENTS = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ARGUMENTS.add_argument("--rounds", type=int, default=500, help="rounds in one turn")
ARGUMENTS.add_argument("--turns", type=int, default=7)
ARGUMENTS.add_argument("--threads", type=int, default=1, help="threads of PyTorch; pin the process to as many cores")

CLIENTS, COHORT, STEPS, BATCH, ROWS, STEP_SIZE = 30, 3, 5, 32, 2000, 0.1
WIDTHS = (784, 200, 200, 10)
# Forward pass, and two products of the same size backward, except that the first layer needs no gradient of its input.
FLOPS = COHORT * STEPS * BATCH * 2 * (3 * sum(a * b for a, b in itertools.pairwise(WIDTHS)) - 784 * 200)


def main() -> None:
    options = ARGUMENTS.parse_args()
    import jax
    import numpy as np
    import torch

    import fedhedge as fh
    from fedhedge.simulation.driver import Simulation
    from fedhedge.simulation.options import Options

    torch.set_num_threads(options.threads)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(CLIENTS * ROWS, WIDTHS[0])).astype(np.float32)
    y = rng.integers(0, WIDTHS[-1], len(X))
    clients = fh.data.Clients.from_splits((X, y, np.repeat(np.arange(CLIENTS), ROWS)))
    law = fh.availability.FixedSize(size=COHORT)

    settings = Options(rounds=options.rounds, evaluate_every=options.rounds, evaluate_on=())
    simulation = Simulation(
        fh.algorithms.FedAvg(step=STEP_SIZE), fh.models.MLP(hidden=WIDTHS[1:-1]), clients, law, settings
    )

    def ours() -> float:
        simulation.begin()
        begun = time.perf_counter()
        simulation.run(None, resume=False, progress=False)
        jax.block_until_ready(simulation.state)
        return time.perf_counter() - begun

    layers = [torch.nn.Linear(a, b) for a, b in itertools.pairwise(WIDTHS)]
    model = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2])
    features, labels = torch.from_numpy(X), torch.from_numpy(y)
    parameters = list(model.parameters())
    criterion = torch.nn.CrossEntropyLoss()
    present = law.bind(CLIENTS).schedule(0, 0, options.rounds)

    def loss_of(client: int) -> torch.Tensor:
        index = torch.from_numpy(client * ROWS + rng.choice(ROWS, BATCH, replace=False))
        return criterion(model(features[index]), labels[index])

    def plain() -> float:
        """As one writes it: an optimiser, backward(), state dictionaries averaged key by key."""
        server = {name: value.clone() for name, value in model.state_dict().items()}
        begun = time.perf_counter()
        for row in present:
            uploads = []
            for client in np.flatnonzero(row):
                model.load_state_dict(server)
                optimiser = torch.optim.SGD(model.parameters(), lr=STEP_SIZE)
                for _ in range(STEPS):
                    optimiser.zero_grad()
                    loss_of(client).backward()
                    optimiser.step()
                uploads.append({name: value.clone() for name, value in model.state_dict().items()})
            server = {name: torch.stack([upload[name] for upload in uploads]).mean(0) for name in server}
        return time.perf_counter() - begun

    def tuned() -> float:
        """By hand: gradients without an optimiser, everything in place."""
        server = [p.detach().clone() for p in parameters]
        begun = time.perf_counter()
        for row in present:
            total = [torch.zeros_like(p) for p in server]
            for client in np.flatnonzero(row):
                with torch.no_grad():
                    for p, s in zip(parameters, server, strict=True):
                        p.copy_(s)
                for _ in range(STEPS):
                    gradient = torch.autograd.grad(loss_of(client), parameters)
                    for p, g in zip(parameters, gradient, strict=True):
                        p.data.sub_(g, alpha=STEP_SIZE)
                for t, p in zip(total, parameters, strict=True):
                    t.add_(p.data)
            server = [t.div_(COHORT) for t in total]
        return time.perf_counter() - begun

    begun = time.perf_counter()
    ours()
    first = time.perf_counter() - begun
    plain(), tuned()
    times = [(ours(), plain(), tuned()) for _ in range(options.turns)]
    mine, usual, by_hand = (statistics.median(column) for column in zip(*times, strict=True))
    against = [statistics.median(row[k] / row[0] for row in times) for k in (1, 2)]
    peak = matrix_peak(jax)
    achieved = FLOPS * options.rounds / mine / 1e9
    threads = f"PyTorch {torch.__version__}, {options.threads} thread(s)"
    print(f"{platform.machine()}, {len(os.sched_getaffinity(0))} core(s) allowed, {threads}")
    print(f"fedhedge             {options.rounds / mine:7.1f} rounds/s   (first call, with compilation: {first:.1f} s)")
    print(f"plain PyTorch loop   {options.rounds / usual:7.1f} rounds/s   ratio {against[0]:.2f}")
    print(f"the same by hand     {options.rounds / by_hand:7.1f} rounds/s   ratio {against[1]:.2f}")
    print(f"medians of {options.turns} turns; fedhedge: {achieved:.0f} of {peak:.0f} GFLOP/s, {achieved / peak:.0%}")


def matrix_peak(jax: object, size: int = 1024) -> float:
    """GFLOP/s of one large float32 matrix product, the best of several."""
    import jax.numpy as jnp

    a = jnp.ones((size, size))
    product = jax.jit(lambda x: x @ x)  # type: ignore[attr-defined]
    product(a).block_until_ready()
    best = float("inf")
    for _ in range(20):
        begun = time.perf_counter()
        product(a).block_until_ready()
        best = min(best, time.perf_counter() - begun)
    return 2 * size**3 / best / 1e9


if __name__ == "__main__":
    main()

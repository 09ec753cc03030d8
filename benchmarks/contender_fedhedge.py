"""Turns of fedhedge's simulation: python contender_fedhedge.py [--work cnn] [--rounds 500]"""

from __future__ import annotations

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
from turns import falling, serve
from work import BATCH, CLIENTS, COHORT, STEPS, WORKS, Work, table

import fedhedge as fh
from fedhedge.simulation.driver import Simulation
from fedhedge.simulation.options import Options

SAMPLE = 2000


def prepared(work: Work, rounds: int) -> Simulation:
    """The simulation of a work, before its first round."""
    features, labels = table(work)
    clients = fh.data.Clients.from_splits((features, labels, np.repeat(np.arange(CLIENTS), work.rows)))
    if work.channels:
        model: fh.models.Model = fh.models.CNN(channels=work.channels, hidden=work.widths[1])
    else:
        model = fh.models.MLP(hidden=work.widths[1:-1])
    options = Options(rounds, STEPS, BATCH, evaluate_every=rounds, evaluate_on=())
    law = fh.availability.FixedSize(size=COHORT)
    return Simulation(fh.algorithms.FedAvg(step=work.step_size), model, clients, law, options)


def matrix_peak(size: int = 1024, repeats: int = 20) -> float:
    """GFLOP/s of one large float32 matrix product, the best of several."""
    a = jnp.ones((size, size))
    product = jax.jit(lambda x: x @ x)
    product(a).block_until_ready()
    best = float("inf")
    for _ in range(repeats):
        begun = time.perf_counter()
        product(a).block_until_ready()
        best = min(best, time.perf_counter() - begun)
    return 2 * size**3 / best / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", choices=WORKS, default="mlp")
    parser.add_argument("--rounds", type=int, default=500)
    given = parser.parse_args()
    simulation = prepared(WORKS[given.work], given.rounds)
    pool = simulation.inputs.pool
    step = len(pool.labels) // SAMPLE
    some, labels = pool.features[::step], pool.labels[::step]

    def loss() -> float:
        return float(simulation.model.loss(simulation.state.server, some, labels).mean())

    def turn() -> dict[str, float]:
        simulation.begin()
        before = loss()
        begun = time.perf_counter()
        simulation.run(None, resume=False, progress=False)
        jax.block_until_ready(simulation.state)
        seconds = time.perf_counter() - begun
        found = {"rounds_per_second": given.rounds / seconds, "seconds": seconds}
        return found | falling(before, loss()) | {"peak_gflops": matrix_peak()}

    serve(f"fedhedge {fh.__version__}, JAX {jax.__version__}", turn)


if __name__ == "__main__":
    main()

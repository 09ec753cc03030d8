"""Seeds and hyper-parameters side by side in one programme, against one run after another.

    make bench BENCH=batched

Softmax regression: 20 step sizes x 5 seeds of FedAvg on 64 features and 10 classes, 30 clients of 60 rows of whom 3
get through, 5 local steps on batches of 32, 500 rounds. DP-Fed DRO: 5 step sizes x 20 seeds, 4 clients of 400 rows,
P = 13, K = 4, everyone in all of the 150 rounds. `fh.sweep` in one process does all runs; the loops, plain NumPy and
PyTorch as one writes them for one run, do a few, one after another. Milliseconds of processor time a run, all on one
thread; compilation is given apart. Before that the loop of DP-Fed DRO must give the model that `fh.simulate` gives,
without noise.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from peers import Loop
from results import Results, options
from work import BATCH, CLASSES, CLIENTS, COHORT, STEPS, Work, batch, cohorts, table

import fedhedge as fh
from fedhedge.dro import phi, phi_subgradient, risk_subgradient

SOFTMAX = Work((64,), 60, (64, CLASSES))
ROUNDS, PRIVATE_ROUNDS = 500, 150
SITES, ROWS, FEATURES, KINDS = 4, 400, 13, 4
AT_LEAST = 20.0


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    # Before JAX starts its threads.
    os.environ["PJRT_NPROC"] = "1"
    torch.set_num_threads(1)
    results = Results.of("Runs side by side", given)
    softmax(results, given.turns, given.quick)
    private(results, given.turns, given.quick)
    results.write()


def softmax(results: Results, turns: int, quick: bool) -> None:
    features, labels = table(SOFTMAX)
    clients = fh.data.Clients.from_splits((features, labels, np.repeat(np.arange(CLIENTS), SOFTMAX.rows)))
    count, seeds, rounds = (2, 2, 50) if quick else (20, 5, ROUNDS)
    methods = [fh.algorithms.FedAvg(step=float(step)) for step in np.geomspace(0.01, 0.5, count)]
    arguments = (fh.models.Linear(), clients, fh.availability.FixedSize(size=COHORT))
    chosen = {"rounds": rounds, "local_steps": STEPS, "batch_size": BATCH, "evaluate_every": rounds, "evaluate_on": ()}
    loop = Loop(SOFTMAX)

    def pytorch() -> None:
        loop.model.load_state_dict(loop.fresh)
        loop.plain(cohorts(loop.rng, rounds))

    compare(
        results,
        "softmax regression",
        (lambda: fh.sweep(methods, *arguments, seeds=range(seeds), **chosen), count * seeds),
        {
            "NumPy loop": lambda: numpy_softmax(features, labels, rounds),
            "PyTorch loop": pytorch,
            "fh.simulate": lambda: fh.simulate(methods[0], *arguments, progress=False, **chosen),
        },
        1 if quick else turns,
    )


def numpy_softmax(features: np.ndarray, labels: np.ndarray, rounds: int) -> np.ndarray:
    """Federated averaging of a softmax regression, weights [P + 1, K]."""
    rng = np.random.default_rng(1)
    rows = np.hstack([features, np.ones((len(features), 1), np.float32)])
    server = np.zeros((rows.shape[1], CLASSES), np.float32)
    for cohort in cohorts(rng, rounds):
        total = np.zeros_like(server)
        for client in cohort:
            weights = server.copy()
            for _ in range(STEPS):
                index = batch(rng, SOFTMAX, client)
                x, y = rows[index], labels[index]
                scores = x @ weights
                scores = np.exp(scores - scores.max(axis=1, keepdims=True))
                scores /= scores.sum(axis=1, keepdims=True)
                scores[np.arange(BATCH), y] -= 1.0
                weights -= SOFTMAX.step_size / BATCH * (x.T @ scores)
            total += weights
        server = total / len(cohort)
    return server


def private(results: Results, turns: int, quick: bool) -> None:
    rng = np.random.default_rng(0)
    means = rng.standard_normal((KINDS, FEATURES))
    labels = rng.integers(KINDS, size=(SITES, ROWS))
    tables = [(means[own] + rng.standard_normal((ROWS, FEATURES)), own) for own in labels]
    X, y = (np.concatenate(column) for column in zip(*tables, strict=True))
    clients = fh.data.Clients.from_splits((X, y, np.repeat(np.arange(SITES), ROWS)))
    count, seeds = (2, 2) if quick else (5, 20)
    privacy = fh.Privacy(epsilon=4.0, delta=1e-5)
    steps = [float(step) for step in np.geomspace(2.0, 32.0, count)]
    methods = [fh.algorithms.DpDroAdmm.calibrated(privacy, PRIVATE_ROUNDS, step=step) for step in steps]
    arguments = (fh.models.CrammerSinger(), clients, fh.availability.Everyone())
    chosen: dict[str, Any] = {"rounds": PRIVATE_ROUNDS, "local_steps": 1, "batch_size": None}
    chosen |= {"evaluate_every": PRIVATE_ROUNDS, "evaluate_on": ()}
    silent = fh.algorithms.DpDroAdmm(noise=0.0, rounds=PRIVATE_ROUNDS)
    same = fh.simulate(silent, *arguments, progress=False, **chosen)
    np.testing.assert_allclose(numpy_private(silent, tables), np.asarray(same.params), atol=1e-9)
    compare(
        results,
        "DP-Fed DRO",
        (lambda: fh.sweep(methods, *arguments, seeds=range(seeds), **chosen), count * seeds),
        {
            "NumPy loop": lambda: numpy_private(methods[0], tables),
            "fh.simulate": lambda: fh.simulate(methods[0], *arguments, progress=False, **chosen),
        },
        1 if quick else turns,
    )


def numpy_private(method: fh.algorithms.DpDroAdmm, tables: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """DP-Fed DRO in its default variant, in the formulas of `DpDroAdmm`; the model [K, P]."""
    rng, rounds = np.random.default_rng(1), method.rounds
    radius, cost, rho = float(method.radius), method.label_cost, method.rho  # type: ignore[arg-type]
    sites = []
    for rows, labels in tables:
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        sites.append((rows * (method.row_bound / np.maximum(length, method.row_bound)), labels))
    shape = KINDS, sites[0][0].shape[1]
    center = result = np.zeros(shape)
    models, totals = [center] * len(sites), [center] * len(sites)
    lambdas, forces = [method.lambda_start] * len(sites), [0.0] * len(sites)
    first = np.floor((1.0 - method.averaged) * rounds)
    for done in range(1, rounds + 1):
        ups = []
        for g, (rows, labels) in enumerate(sites):
            deviation = method.noise * 2.0 * np.sqrt(2.0) * method.row_bound / len(rows)
            bound = (np.sqrt(2.0) * method.row_bound + radius * np.sqrt(2.0)) ** 2 + np.prod(shape) * deviation**2
            eta = method.step / np.sqrt(bound * rounds)
            bound = (max(radius, cost - radius) + radius) ** 2 + (method.lambda_noise * cost / len(rows)) ** 2
            nu = method.lambda_step / np.sqrt(bound * rounds)
            gradient, slope = risk_subgradient(models[g], lambdas[g], rows, labels, cost)
            move = nu * (radius + slope) - method.lambda_noise * cost * nu / len(rows) * rng.standard_normal()
            forces[g] += (move / nu - forces[g]) / np.sqrt(rounds)
            gradient = gradient + np.clip(forces[g], 0.0, radius) * phi_subgradient(models[g], method.norm)
            fresh = (models[g] / eta + rho * (2.0 * center - totals[g]) - gradient) / (1.0 / eta + rho)
            fresh = fresh + deviation / (rho + 1.0 / eta) * rng.standard_normal(shape)
            lambdas[g] = max(lambdas[g] - move, phi(fresh, method.norm))
            ups.append(fresh - center)
            models[g], totals[g] = fresh, totals[g] + fresh - center
        center = center + np.mean(ups, axis=0)
        result = result + (center - result) / max(1.0, done - first)
    return result


def compare(
    results: Results,
    what: str,
    ours: tuple[Callable[[], Any], int],
    loops: dict[str, Callable[[], Any]],
    turns: int,
) -> None:
    """Milliseconds a run of ours, (all runs, how many), and of each loop, in turns."""
    run, count = ours
    with_compilation = milliseconds(run) / count
    for loop in loops.values():
        loop()
    times = [(milliseconds(run) / count, *map(milliseconds, loops.values())) for _ in range(turns)]
    mine, *others = zip(*times, strict=True)
    results.add(f"{what}, {count} runs side by side", mine, "ms a run")
    results.add(f"{what}, the first time, with compilation", with_compilation, "ms a run")
    for name, found in zip(loops, others, strict=True):
        results.add(f"{what}, {name}", found, "ms a run")
        target = {} if name.startswith("fh.") else {"at_least": AT_LEAST}
        results.add(f"{what}, {name} / side by side", [b / a for a, b in zip(mine, found, strict=True)], "×", **target)


def milliseconds(work: Callable[[], Any]) -> float:
    begun = time.process_time()
    work()
    return 1e3 * (time.process_time() - begun)


if __name__ == "__main__":
    main()

"""Time of the exact client solver against CVXPY with Clarabel rebuilt each time, in the same process.

    OPENBLAS_NUM_THREADS=1 taskset -c 1 python benchmarks/dro_solver.py [--growth]

Cold: from scratch. Warm: along the rounds of consensus ADMM over four clients, each started from its last solution.
CVXPY solves some of the same problems, in turns with ours. Medians of processor time, so that other work on the machine
does not count. `--growth` repeats it at larger N, P and K.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np

from fedhedge.dro import solve_client

RADIUS, LABEL_COST, RHO = 0.05, 0.5, 0.1
CLIENTS, ROUNDS, REPEATS = 4, 30, 5
SIZES = ((400, 13, 4),)
GROWTH = ((400, 13, 4), (800, 13, 4), (1600, 13, 4), (400, 26, 4), (400, 52, 4), (400, 13, 6), (400, 13, 8))


def client_rows(seed: int, rows: int, features: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian classes that overlap, one label in twenty wrong, rows clipped to norm 1."""
    means = np.random.default_rng(0).normal(size=(classes, features))
    rng = np.random.default_rng(1 + seed)
    y = rng.integers(classes, size=rows)
    X = (means[y] + rng.normal(size=(rows, features))) / (1.5 * np.sqrt(features))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    return X, np.where(rng.random(rows) < 0.05, rng.integers(classes, size=rows), y)


def solve_with_cvxpy(X: np.ndarray, y: np.ndarray, norm: str, center: np.ndarray) -> float:
    """Build the client problem anew and solve it."""
    classes = len(center)
    model, lam, losses = cp.Variable(center.shape), cp.Variable(), cp.Variable(len(y), nonneg=True)
    scores = X @ model.T
    pairs = [(j, k) for j in range(classes) for k in range(classes) if j != k]
    constraints = [losses >= 1 + scores[:, j] - scores[:, k] - LABEL_COST * lam * (y != k) for j, k in pairs]
    dual = {"l1": "inf", "l2": 2, "linf": 1}[norm]
    constraints += [lam >= cp.norm(model[j] - model[k], dual) for j, k in pairs if j < k]
    objective = RADIUS * lam + cp.sum(losses) / len(y) + RHO / 2 * cp.sum_squares(model - center)
    problem = cp.Problem(cp.Minimize(objective), constraints)
    problem.solve(cp.CLARABEL)
    return float(problem.value)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def measure(rows: int, features: int, classes: int, norm: str) -> None:
    tables = [client_rows(seed, rows, features, classes) for seed in range(CLIENTS)]
    shape = (classes, features)
    mean, duals, states = np.zeros(shape), np.zeros((CLIENTS, *shape)), [None] * CLIENTS
    cold, warm, rebuilt, passes, gaps, errors = [], [], [], [], [], []
    for number in range(ROUNDS):
        models = np.empty((CLIENTS, *shape))
        for client, (X, y) in enumerate(tables):
            center = mean - duals[client]
            arguments = (X, y, RADIUS, LABEL_COST, norm, center, RHO)
            seconds, found = timed(lambda a=arguments, s=states[client]: solve_client(*a, warm=s))
            states[client], models[client] = found.warm, found.coef
            gaps.append(max(found.gap, found.kkt))
            if number == 0:
                cold.append(seconds)
                continue
            warm.append(seconds)
            passes.append(found.iterations)
            if client == 0 and number % (ROUNDS // REPEATS) == 1:
                cold.append(timed(lambda a=arguments: solve_client(*a))[0])
                seconds, value = timed(lambda X=X, y=y, c=center: solve_with_cvxpy(X, y, norm, c))
                rebuilt.append(seconds)
                errors.append(abs(value - found.objective) / max(1.0, found.objective))
        mean = (models + duals).mean(0)
        duals += models - mean
    cold_ms, warm_ms, rebuilt_ms = (1e3 * statistics.median(times) for times in (cold, warm, rebuilt))
    print(
        f"{norm:>4} {rows:6d} {features:4d} {classes:3d} {rebuilt_ms:9.1f} {cold_ms:8.1f} {warm_ms:8.2f} "
        f"{rebuilt_ms / cold_ms:7.0f} {rebuilt_ms / warm_ms:7.0f} {statistics.mean(passes):7.1f} {max(gaps):9.1e} "
        f"{max(errors):9.1e}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--growth", action="store_true", help="also at larger N, P and K")
    sizes = GROWTH if parser.parse_args().growth else SIZES
    print("medians in ms; worst gap or KKT residual of all solves; worst relative difference from CVXPY's value")
    print("norm      N    P   K     CVXPY     cold     warm  x cold  x warm  passes  gap, KKT    differs")
    for size in sizes:
        for norm in ("l1", "l2", "linf"):
            measure(*size, norm)


if __name__ == "__main__":
    main()

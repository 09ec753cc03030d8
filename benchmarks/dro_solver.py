"""Time of the exact client solver against CVXPY with Clarabel rebuilt each time, in the same process.

    make bench BENCH=dro_solver
    OPENBLAS_NUM_THREADS=1 taskset -c 1 python benchmarks/dro_solver.py

Cold: from scratch. Warm: along the rounds of consensus ADMM over four clients, each started from its last solution.
CVXPY solves some of the same problems, in turns with ours. Medians of processor time, so that other work on the machine
does not count. How times grow with N, P and K: see dro_growth.py.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np
from results import Results, options

from fedhedge.dro import solve_client

RADIUS, LABEL_COST, RHO = 0.05, 0.5, 0.1
CLIENTS, ROUNDS, REPEATS = 4, 60, 5
SIZE = (400, 13, 4)
COLD_AT_MOST, WARM_AT_MOST, ADMM_AT_MOST = 60.0, 3.0, 1.5
Size = tuple[int, int, int]


@dataclass
class Times:
    """Seconds of our solves and of CVXPY's; the worst gap or residual, and relative difference of objectives."""

    cold: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    rebuilt: list[float] = field(default_factory=list)
    whole: float = 0.0
    gap: float = 0.0
    error: float = 0.0


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


def admm(size: Size, norm: str, rounds: int, compared: int) -> Times:
    """Consensus ADMM over four clients; some of the first client's problems are also solved from scratch by both."""
    tables = [client_rows(seed, *size) for seed in range(CLIENTS)]
    shape = (size[2], size[1])
    mean, duals, states = np.zeros(shape), np.zeros((CLIENTS, *shape)), [None] * CLIENTS
    times = Times()
    for number in range(rounds):
        models = np.empty((CLIENTS, *shape))
        for client, (X, y) in enumerate(tables):
            center = mean - duals[client]
            arguments = (X, y, RADIUS, LABEL_COST, norm, center, RHO)
            seconds, found = timed(lambda a=arguments, s=states[client]: solve_client(*a, start=s))
            states[client] = models[client] = found.coef
            times.gap = max(times.gap, found.gap, found.kkt)
            (times.warm if number else times.cold).append(seconds)
            if compared and client == 0 and number and number % max(1, rounds // compared) == 1:
                times.cold.append(timed(lambda a=arguments: solve_client(*a))[0])
                seconds, value = timed(lambda X=X, y=y, c=center: solve_with_cvxpy(X, y, norm, c))
                times.rebuilt.append(seconds)
                times.error = max(times.error, abs(value - found.objective) / max(1.0, found.objective))
        mean = (models + duals).mean(0)
        duals += models - mean
    times.whole = sum(times.cold[:CLIENTS]) + sum(times.warm)
    return times


def simulated(norm: str, rounds: int) -> float:
    """Seconds of as many rounds of the method itself, through `fh.simulate`, all that belongs to a run included."""
    import fedhedge as fh

    X, y = (np.concatenate(column) for column in zip(*(client_rows(s, *SIZE) for s in range(CLIENTS)), strict=True))
    clients = fh.data.Clients.from_splits((X, y, np.repeat(np.arange(CLIENTS), SIZE[0])))
    method = fh.algorithms.DroAdmm(radius=RADIUS, label_cost=LABEL_COST, norm=norm, rho=RHO, tolerance=0.0)
    settings: dict[str, Any] = {"local_steps": 1, "batch_size": None, "evaluate_every": rounds, "evaluate_on": ()}
    rest = (method, fh.models.CrammerSinger(), clients, fh.availability.Everyone())
    fh.simulate(*rest, rounds=2, **settings, progress=False)
    return timed(lambda: fh.simulate(*rest, rounds=rounds, **settings, progress=False))[0]


def main() -> None:
    given = options(__doc__).parse_args()
    rounds, compared = (6, 1) if given.quick else (ROUNDS, REPEATS)
    results = Results.of("The exact robust client solver, N = 400, P = 13, K = 4", given)
    for norm in ("l1", "l2", "linf"):
        times = admm(SIZE, norm, rounds, compared)
        cold, warm, rebuilt = ([1e3 * value for value in column] for column in (times.cold, times.warm, times.rebuilt))
        results.add(f"{norm}: cold", cold, "ms", at_most=COLD_AT_MOST)
        results.add(f"{norm}: warm", warm, "ms", at_most=WARM_AT_MOST)
        results.add(f"{norm}: CVXPY with Clarabel, rebuilt", rebuilt, "ms")
        middle = statistics.median(rebuilt)
        results.add(f"{norm}: CVXPY / cold", middle / statistics.median(cold), "×")
        results.add(f"{norm}: CVXPY / warm", middle / statistics.median(warm), "×")
        results.add(
            f"{norm}: {rounds} rounds of {CLIENTS} clients, solves alone", times.whole, "s", at_most=ADMM_AT_MOST
        )
        whole = simulated(norm, rounds)
        results.add(f"{norm}: {rounds} rounds of DroAdmm by simulate", whole, "s", at_most=ADMM_AT_MOST)
        results.remark(
            f"{norm}: worst gap or residual {times.gap:.1e}; worst relative difference from CVXPY's value "
            f"{times.error:.1e}."
        )
    results.write()


if __name__ == "__main__":
    main()

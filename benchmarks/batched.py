"""Seeds and hyper-parameters side by side in one programme, against one run after another.

    make bench BENCH=batched

Softmax regression: 20 step sizes x 5 seeds of FedAvg on 64 features and 10 classes, 30 clients of 60 rows of whom 3
get through, 5 local steps on batches of 32, 500 rounds. DP-Fed DRO: 5 step sizes x 20 seeds, 4 clients of 400 rows,
P = 13, K = 4, everyone in all of the 150 rounds. `fh.sweep` in one process does all runs; the loops, plain NumPy and
PyTorch as one writes them for one run, do a few, one after another. Milliseconds of processor time a run, all on one
thread; compilation is given apart. Before that the loops of DP-Fed DRO must give the model that `fh.simulate` gives,
without noise. The aim is against the plain PyTorch loop (backward, optimiser), as in the other benchmarks.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

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

    def pytorch(form: Callable[..., None]) -> None:
        loop.model.load_state_dict(loop.fresh)
        form(cohorts(loop.rng, rounds))

    compare(
        results,
        "softmax regression",
        (lambda: fh.sweep(methods, *arguments, seeds=range(seeds), **chosen), count * seeds),
        {
            "NumPy loop": lambda: numpy_softmax(features, labels, rounds),
            "plain PyTorch loop": lambda: pytorch(loop.plain),
            "PyTorch by hand": lambda: pytorch(loop.tuned),
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
    same = np.asarray(fh.simulate(silent, *arguments, progress=False, **chosen).params)
    loops = {
        "NumPy loop": numpy_arrays(),
        "plain PyTorch loop": torch_arrays(by_hand=False),
        "PyTorch by hand": torch_arrays(by_hand=True),
    }
    for arrays in loops.values():
        np.testing.assert_allclose(private_loop(silent, tables, arrays), same, atol=1e-9)
    compare(
        results,
        "DP-Fed DRO",
        (lambda: fh.sweep(methods, *arguments, seeds=range(seeds), **chosen), count * seeds),
        {
            **{name: lambda arrays=arrays: private_loop(methods[0], tables, arrays) for name, arrays in loops.items()},
            "fh.simulate": lambda: fh.simulate(methods[0], *arguments, progress=False, **chosen),
        },
        1 if quick else turns,
    )


class Arrays(NamedTuple):
    """What a loop over rounds of DP-Fed DRO computes with: NumPy or PyTorch.

    of(rows) -> array; normal(shape) -> standard normal draws; risk(model, lam, rows, labels, cost) -> subgradients of
    the mean robust loss in model and lam; norm(model) -> phi; norm_subgradient(model) -> one of phi.
    """

    of: Callable[[np.ndarray], Any]
    normal: Callable[[tuple[int, ...]], Any]
    risk: Callable[..., tuple[Any, Any]]
    norm: Callable[[Any], Any]
    norm_subgradient: Callable[[Any], Any]


def numpy_arrays() -> Arrays:
    """The package's own subgradients, in NumPy."""
    rng = np.random.default_rng(1)
    return Arrays(
        np.asarray,
        rng.standard_normal,
        risk_subgradient,
        lambda model: phi(model, "l1"),
        lambda model: phi_subgradient(model, "l1"),
    )


def torch_arrays(by_hand: bool) -> Arrays:
    """The same in PyTorch: subgradients by automatic differentiation, or by hand as in the package."""

    def plain(model: Any, lam: float, rows: Any, labels: Any, cost: float) -> tuple[Any, float]:
        model = model.detach().requires_grad_()
        multiplier = torch.tensor(lam, dtype=torch.float64, requires_grad=True)
        scores = rows @ model.T
        violations = 1.0 + scores[:, :, None] - scores[:, None, :]
        violations = violations.masked_fill(torch.eye(len(model), dtype=torch.bool), -torch.inf)
        flipped = torch.arange(len(model)) != labels[:, None]
        worst = (violations.max(dim=1).values - cost * multiplier * flipped).max(dim=1).values
        worst.clamp(min=0.0).mean().backward()
        return model.grad, multiplier.grad.item()

    def hand(model: Any, lam: float, rows: Any, labels: Any, cost: float) -> tuple[Any, float]:
        every = torch.arange(len(rows))
        scores = rows @ model.T
        # Of equal ones, torch.max takes the first, which topk does not promise.
        top, best = scores.max(dim=1, keepdim=True)
        next_top, second = scores.scatter(1, best, -torch.inf).max(dim=1, keepdim=True)
        is_best = torch.arange(len(model)) == best
        margins = 1.0 + torch.where(is_best, next_top, top) - scores
        rivals = torch.where(is_best, second, best)
        own = margins[every, labels]
        margins[every, labels] = -torch.inf
        other, other_label = margins.max(dim=1)
        flipped = other - cost * lam > own
        active = torch.where(flipped, other - cost * lam, own) > 0.0
        label = torch.where(flipped, other_label, labels)
        sign = torch.zeros_like(scores)
        sign[every, rivals[every, label]] = active.double()
        sign[every, label] = -active.double()
        return sign.T @ rows / len(rows), -cost * (flipped & active).double().mean().item()

    first, second = torch.triu_indices(KINDS, KINDS, 1)

    def norm(model: Any) -> float:
        return (model[first] - model[second]).abs().max().item()

    def norm_subgradient(model: Any) -> Any:
        differences = model[first] - model[second]
        pair, feature = divmod(int(differences.abs().argmax()), differences.shape[1])
        found = torch.zeros_like(model)
        found[first[pair], feature] = differences[pair, feature].sign()
        found[second[pair], feature] = -found[first[pair], feature]
        return found

    generator = torch.Generator().manual_seed(1)

    def normal(shape: tuple[int, ...]) -> Any:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    return Arrays(torch.as_tensor, normal, hand if by_hand else plain, norm, norm_subgradient)


def private_loop(method: fh.algorithms.DpDroAdmm, tables: list[tuple[np.ndarray, np.ndarray]], xp: Arrays) -> Any:
    """DP-Fed DRO in its default variant with norm l1, in the formulas of `DpDroAdmm`; the model [K, P]."""
    rounds, radius, cost, rho = method.rounds, float(method.radius), method.label_cost, method.rho  # type: ignore[arg-type]
    sites = []
    for rows, labels in tables:
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        sites.append((xp.of(rows * (method.row_bound / np.maximum(length, method.row_bound))), xp.of(labels)))
    shape = KINDS, sites[0][0].shape[1]
    center = result = xp.of(np.zeros(shape))
    models, totals = [center] * len(sites), [center] * len(sites)
    lambdas, forces = [method.lambda_start] * len(sites), [0.0] * len(sites)
    first = math.floor((1.0 - method.averaged) * rounds)
    for done in range(1, rounds + 1):
        ups = []
        for g, (rows, labels) in enumerate(sites):
            deviation = method.noise * 2.0 * math.sqrt(2.0) * method.row_bound / len(rows)
            bound = (math.sqrt(2.0) * method.row_bound + radius * math.sqrt(2.0)) ** 2
            eta = method.step / math.sqrt((bound + math.prod(shape) * deviation**2) * rounds)
            bound = (max(radius, cost - radius) + radius) ** 2 + (method.lambda_noise * cost / len(rows)) ** 2
            nu = method.lambda_step / math.sqrt(bound * rounds)
            gradient, slope = xp.risk(models[g], lambdas[g], rows, labels, cost)
            move = nu * (radius + slope) - method.lambda_noise * cost * nu / len(rows) * float(xp.normal(()))
            forces[g] += (move / nu - forces[g]) / math.sqrt(rounds)
            gradient = gradient + min(max(forces[g], 0.0), radius) * xp.norm_subgradient(models[g])
            fresh = (models[g] / eta + rho * (2.0 * center - totals[g]) - gradient) / (1.0 / eta + rho)
            fresh = fresh + deviation / (rho + 1.0 / eta) * xp.normal(shape)
            lambdas[g] = max(lambdas[g] - move, xp.norm(fresh))
            ups.append(fresh - center)
            models[g], totals[g] = fresh, totals[g] + fresh - center
        center = center + sum(ups) / len(ups)
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
        target = {"at_least": AT_LEAST} if name.startswith("plain") else {}
        results.add(f"{what}, {name} / side by side", [b / a for a, b in zip(mine, found, strict=True)], "×", **target)


def milliseconds(work: Callable[[], Any]) -> float:
    begun = time.process_time()
    work()
    return 1e3 * (time.process_time() - begun)


if __name__ == "__main__":
    main()

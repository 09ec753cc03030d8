"""FedeRage, Fig. 3: the weights that CVaR gives to clients, and what the size of the mini-batch does to the problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from fedhedge.algorithms import Algorithm, FedAvg, FedeRage
from fedhedge.availability import presets
from fedhedge.data import ByLabel, load
from fedhedge.evaluation import paired_t
from fedhedge.experiments import federage_counts as counts
from fedhedge.experiments import federage_fig3_plots as plots
from fedhedge.experiments.absolute_loss import CLIENTS, LAW, losses, problem
from fedhedge.experiments.demo import RARE
from fedhedge.experiments.federage_programme import batch_risk, solve
from fedhedge.experiments.federage_runs import Setting, choose, in_parts, points, share, views
from fedhedge.models import Linear
from fedhedge.report import style
from fedhedge.report.section import Section, in_terminal, write_section
from fedhedge.report.tables import Table

Frames = dict[str, pd.DataFrame]
WEIGHTS = tuple(LAW.weights())
ALPHAS = tuple(np.round(np.geomspace(0.05, 1.0, 40), 4))
MEASURED = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
SIZES = (1, 2, 4)
# What is shown of the optimum over all mini-batches: alpha and gamma.
SHOWN = (0.2, 0.8)
REAL_ALPHA, REAL_GAMMA, SCALE = 0.05, 0.75, 1.0
REAL_ALPHAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
GIVEN, ADJUSTED, NONE = "alpha 0.05", "alpha by b", "FedAvg"
MEASURES = {"mean": "client mean", "worst": "worst client", "rare": "rare clients"}
LAST = 2


@dataclass(frozen=True)
class Size:
    """How much is computed: rounds of the convex problem, and rounds, sizes b and seeds on digits."""

    rounds: int = 30_000
    real_rounds: int = 1_000
    real_sizes: tuple[int, ...] = (1, 4, 32)
    seeds: tuple[int, ...] = tuple(range(5))
    choosing: tuple[int, ...] = (100,)


def main(out: Path, *, fast: bool = False, quiet: bool = False) -> pd.DataFrame:
    """Solve, train, and write numbers, figures and section to `out`; returns the numbers of the runs on digits."""
    size = Size(3_000, 200, (4, 32), (0, 1, 2), (100,)) if fast else Size()
    data = exact() | measured(size, out, quiet) | real(size, out, quiet)
    section = _section(size, data, "fedhedge reproduce federage-fig3" + (" --fast" if fast else ""))
    write_section(out, section)
    if not quiet:
        print(in_terminal(section))
    return data["digits"]


def exact() -> Frames:
    """Dual weights under CVaR alone by alpha, and the optimum of mean and CVaR over all mini-batches by b."""
    dual = [(alpha, i, solve(WEIGHTS, alpha, 1.0).client[i]) for alpha in ALPHAS for i in range(CLIENTS)]
    lines = []
    gamma = SHOWN[1]
    for size in SIZES:
        for alpha in ALPHAS:
            best = solve(WEIGHTS, alpha, gamma, size)
            loss = losses(best.w).reshape(CLIENTS, -1).mean(axis=1)
            # How far the optimum of single rows is from the best here.
            regret = batch_risk(solve(WEIGHTS, alpha, gamma).w, WEIGHTS, alpha, gamma, size) - best.value
            lines.append((size, alpha, gamma, *best.w, best.value, regret, float(WEIGHTS @ loss), *loss))
    names = ["b", "alpha", "gamma", "w0", "w1", "risk", "regret_of_b1", "mean_loss"]
    names += [f"loss_{i}" for i in range(CLIENTS)]
    return {
        "dual_weights": pd.DataFrame(dual, columns=["alpha", "client", "weight"]),
        "optimum_by_b": pd.DataFrame(lines, columns=names),
    }


def measured(size: Size, out: Path, quiet: bool) -> Frames:
    """Share of the tail steps that each client has in runs of FedeRage with CVaR alone on the convex problem."""
    clients, model = problem()
    one = Setting("convex", model, clients, LAW, (CLIENTS - 1,), {"rounds": size.rounds, "evaluate_every": size.rounds})
    lines = []
    for alpha in tqdm(MEASURED, desc="tail steps", unit="alpha", disable=True if quiet else None):
        # The steps of the check of the theorems.
        scale = (1.0 / alpha) * size.rounds**0.5
        method = counts.CountingFedeRage(
            alpha=alpha, gamma=1.0, step=3.0 / scale, beta_step=1.0 / scale, ball=5.0, cap=10.0
        )
        jobs = one.jobs({f"{alpha:g}": method}, size.seeds, local_steps=1, batch_size=1)
        for seed, found in zip(size.seeds, counts.kept(jobs, out / "counts"), strict=True):
            tail = found["tail"] / found["tail"].sum()
            lines += [(alpha, seed, i, tail[i], found["steps"][i] / found["steps"].sum()) for i in range(CLIENTS)]
    return {"tail_steps": pd.DataFrame(lines, columns=["alpha", "seed", "client", "tail_share", "step_share"])}


def digits(rounds: int) -> Setting:
    """The demonstration's clients and availability, softmax regression."""
    clients = load("digits").partition(ByLabel(clients=30, classes_per_client=2, reserved=RARE), seed=0)
    options = {"rounds": rounds, "evaluate_every": rounds // 10}
    return Setting("digits", Linear(), clients, presets.sporadic(), tuple(RARE), options)


def federage(alpha: float) -> FedeRage:
    """FedeRage at a tail mass, with the step that its kappa asks for."""
    kappa = 1.0 - REAL_GAMMA + REAL_GAMMA / alpha
    return FedeRage(alpha=alpha, gamma=REAL_GAMMA, step=SCALE / kappa, beta_step=0.01)


def real(size: Size, out: Path, quiet: bool) -> Frames:
    """Accuracy on digits by b, at a given alpha and at one chosen for each b; and tail steps by client at b = 32."""
    one = digits(size.real_rounds)
    scores, jobs, about = [], [], []
    for b in size.real_sizes:
        at_b = Setting(f"digits-b{b}", one.model, one.clients, one.law, one.rare, {**one.options, "batch_size": b})
        candidates = {ADJUSTED: [federage(alpha) for alpha in REAL_ALPHAS]}
        chosen, table = choose(at_b, candidates, size.choosing, out / "choosing", quiet=quiet)
        scores.append(table.assign(b=b))
        methods: dict[str, Algorithm] = {NONE: FedAvg(step=SCALE), GIVEN: federage(REAL_ALPHA)} | chosen
        for label, method in methods.items():
            jobs += at_b.jobs({label: method}, size.seeds)
            alpha = getattr(method, "alpha", np.nan)
            about += [{"b": b, "method": label, "alpha": alpha, "seed": seed} for seed in size.seeds]
    runs = in_parts(jobs, out / "runs", len(size.seeds), quiet=quiet, title="training, digits")
    frame = pd.DataFrame([a | views(run, one.rare, LAST) for a, run in zip(about, runs, strict=True)])
    method = counts.CountingFedeRage(**{key: getattr(federage(REAL_ALPHA), key) for key in counts.FIELDS})
    found = counts.kept(one.jobs({"counted": method}, size.seeds), out / "counts")
    lines = []
    for seed, each in zip(size.seeds, found, strict=True):
        weight = (1 - REAL_GAMMA) * each["steps"] + REAL_GAMMA / REAL_ALPHA * each["tail"]
        weight = weight / weight.sum()
        rate = each["tail"] / np.maximum(each["steps"], 1)
        lines += [
            (seed, i, p, each["steps"][i] / each["steps"].sum(), each["tail"][i] / each["tail"].sum(), rate[i], w)
            for i, (p, w) in enumerate(zip(one.law.weights(), weight, strict=True))
        ]
    names = ["seed", "client", "p", "step_share", "tail_share", "tail_rate", "weight"]
    return {
        "digits": frame,
        "digits_chosen": pd.concat(scores, ignore_index=True),
        "digits_tail_steps": pd.DataFrame(lines, columns=names),
        "digits_differences": _differences(frame),
    }


def _differences(frame: pd.DataFrame) -> pd.DataFrame:
    """Each method minus FedAvg at the same b, and each b minus the largest at the same method; paired by seed."""
    lines = []
    largest = frame["b"].max()
    for (b, method), part in frame.groupby(["b", "method"], sort=False):
        for kind, other in (("FedAvg", (b, NONE)), (f"b = {largest}", (largest, method))):
            if other == (b, method):
                continue
            base = frame[(frame["b"] == other[0]) & (frame["method"] == other[1])]
            for measure in MEASURES:
                found = paired_t(part[measure].to_numpy(), base[measure].to_numpy())
                lines.append((b, method, kind, measure, found.difference, found.low, found.high, found.pairs))
    names = ["b", "method", "minus", "measure", "difference", "low", "high", "seeds"]
    return pd.DataFrame(lines, columns=names)


def _section(size: Size, data: Mapping[str, pd.DataFrame], command: str) -> Section:
    steps = data["digits_tail_steps"]
    steps = steps[steps["client"].isin(RARE)]
    rare = steps.groupby("seed")[["p", "step_share", "tail_share", "weight"]].sum().mean()
    with style.settings():
        figures = [
            plots.dual_weights(data["dual_weights"], data["tail_steps"], WEIGHTS),
            plots.optimum_by_b(data["optimum_by_b"], CLIENTS - 1),
            plots.accuracy_by_b(data["digits"], MEASURES),
        ]
    text = [
        "3a. Five clients with four rows each and the loss |x'w - y|; client 4, the rarest, lies far from the others. "
        "Under CVaR alone a linear programme gives the optimum and the dual weights q of its rows, at most "
        "p_i / (4 alpha) each and 1 in all; a client's weight is their sum. At alpha = 1 that is p_i. Dots: the share "
        f"of steps in the tail (loss at or above beta) that each client had in runs of FedeRage of {size.rounds:,} "
        f"rounds, mean over {len(size.seeds)} seeds.",
        f"On digits (30 clients, the three rare ones with classes 8 and 9, softmax regression, alpha {REAL_ALPHA}, "
        f"gamma {REAL_GAMMA}, b = 32) the rare clients' availability weighs {100 * rare['p']:.2f} % in the average; "
        f"they took {100 * rare['step_share']:.2f} % of the steps, had {100 * rare['tail_share']:.1f} % of the tail "
        f"steps, and so {100 * rare['weight']:.1f} % of the weight.",
        f"3b. The same convex problem with every mini-batch of b rows of a client enumerated, gamma {SHOWN[1]}: the "
        f"optimum depends on b, because CVaR is of mini-batch losses; without CVaR it does not. On digits: "
        f"{size.real_rounds:,} rounds, step {SCALE}/kappa, FedAvg at step {SCALE}; alpha {REAL_ALPHA}, or for each b "
        f"the one of {', '.join(f'{alpha:g}' for alpha in REAL_ALPHAS)} with the best accuracy on validation rows, "
        f"seed {', '.join(map(str, size.choosing))}. Means of the last {LAST} evaluations on test rows, "
        f"{len(size.seeds)} seeds; a client that gets through sees 5 b rows in a round.",
    ]
    tables = {
        "Client weights under CVaR": _weights_table(data["dual_weights"], data["tail_steps"]),
        f"Optimum over all mini-batches, alpha {SHOWN[0]}, gamma {SHOWN[1]}": _optimum_table(data["optimum_by_b"]),
        "Accuracy on digits by b, %": _digits_table(data["digits"]),
        "Minus FedAvg at the same b, points": _minus_table(data["digits_differences"], "FedAvg"),
        f"Minus b = {max(size.real_sizes)}, points": _minus_table(
            data["digits_differences"], f"b = {max(size.real_sizes)}"
        ),
    }
    title = "FedeRage, Fig. 3: weights under CVaR, and the size of the mini-batch"
    return Section("federage-fig3", title, text, command, tables, figures, data)


def _weights_table(dual: pd.DataFrame, runs: pd.DataFrame) -> Table:
    rows = [["p", *[f"{value:.3f}" for value in WEIGHTS]]]
    for alpha in MEASURED:
        exact_here = solve(WEIGHTS, alpha, 1.0).client
        seen = runs[runs["alpha"] == alpha].groupby("client")["tail_share"].mean()
        rows.append([f"alpha {alpha:g}, optimum", *[f"{value:.3f}" for value in exact_here]])
        rows.append([f"alpha {alpha:g}, runs", *[f"{value:.3f}" for value in seen]])
    return Table(["weights", *[f"client {i}" for i in range(CLIENTS)]], rows)


def _optimum_table(frame: pd.DataFrame) -> Table:
    alpha, gamma = SHOWN
    rows = []
    for b in SIZES:
        best = solve(WEIGHTS, alpha, gamma, b)
        loss = losses(best.w).reshape(CLIENTS, -1).mean(axis=1)
        regret = batch_risk(solve(WEIGHTS, alpha, gamma).w, WEIGHTS, alpha, gamma, b) - best.value
        w = ", ".join(f"{value:.3f}" for value in best.w)
        rows.append([f"b = {b}", w, f"{best.value:.3f}", f"{regret:.4f}", f"{WEIGHTS @ loss:.3f}", f"{loss[-1]:.3f}"])
    return Table(["", "w", "risk", "excess of\nb = 1's w", "mean loss", "rare client's\nloss"], rows)


def _digits_table(frame: pd.DataFrame) -> Table:
    rows = []
    for (b, method), part in frame.groupby(["b", "method"], sort=False):
        label = f"b = {b}, {method}"
        if method == ADJUSTED:
            label += f" ({part['alpha'].iloc[0]:g})"
        rows.append([label, *[share(part[measure]) for measure in MEASURES]])
    return Table(["", *MEASURES.values()], rows)


def _minus_table(frame: pd.DataFrame, minus: str) -> Table:
    rows = []
    for (b, method), part in frame[frame["minus"] == minus].groupby(["b", "method"], sort=False):
        cells = [points(part[part["measure"] == measure].iloc[0]) for measure in MEASURES]
        rows.append([f"b = {b}, {method}", *cells])
    return Table(["", *MEASURES.values()], rows)

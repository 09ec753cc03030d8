"""FedeRage under all tail masses alpha and tail weights gamma: softmax regression on digits and FashionMNIST."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from fedhedge.algorithms import FedAvg, FedeRage
from fedhedge.availability import FixedSize, Law, presets
from fedhedge.data import ByLabel, load
from fedhedge.evaluation import paired_t
from fedhedge.experiments.demo import RARE
from fedhedge.experiments.federage_heatmap import heatmaps
from fedhedge.experiments.federage_runs import Setting, choose, in_parts, points, views
from fedhedge.models import Linear
from fedhedge.report import style
from fedhedge.report.section import Section, in_terminal, write_section
from fedhedge.report.tables import Table

ALPHAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
GAMMAS = (0.1, 0.25, 0.5, 0.75, 0.9)
LAWS: dict[str, Law] = {"skewed": presets.sporadic(), "uniform": FixedSize(size=3)}
# One rule for all: step scale/kappa, with the scale that validation chooses for a data set.
SCALES = (0.03, 0.1, 0.3, 1.0)
# In runs this short, beta comes down from its first overshoot with no smaller step.
BETA_STEP = 0.01
# Where the rule is judged: FedAvg, a thin tail and a thick one.
JUDGED = ((1.0, 0.0), (0.05, 0.75), (0.2, 0.5))
MEASURES = {"mean": "client mean", "rare": "rare clients", "worst": "worst client", "cvar_loss": "loss, worst 10 %"}
LAST = 3


@dataclass(frozen=True)
class Source:
    """A data set with its rounds, and whether its runs pay side by side."""

    name: str
    rounds: int
    side_by_side: bool


@dataclass(frozen=True)
class Size:
    """How much is computed."""

    sources: tuple[Source, ...] = (Source("digits", 2_000, True), Source("fashion-mnist", 1_000, False))
    alphas: tuple[float, ...] = ALPHAS
    gammas: tuple[float, ...] = GAMMAS
    seeds: tuple[int, ...] = tuple(range(5))
    choosing: tuple[int, ...] = (100, 101)


def main(out: Path, *, fast: bool = False, quiet: bool = False) -> pd.DataFrame:
    """Choose the step, train the grid, write numbers, heat maps and section to `out`; returns means and differences.

    Raises MissingData before anything is trained when FashionMNIST is not there; fast does without it.
    """
    part = Size((Source("digits", 500, True),), (0.05, 0.2), (0.5, 0.9), (0, 1, 2), (100,))
    size = part if fast else Size()
    return run(size, out, "fedhedge reproduce federage-sensitivity" + (" --fast" if fast else ""), quiet=quiet)


def settings(source: Source) -> dict[str, Setting]:
    """The demonstration's clients under both laws."""
    clients = load(source.name).partition(ByLabel(clients=30, classes_per_client=2, reserved=RARE), seed=0)
    options = {"rounds": source.rounds, "evaluate_every": source.rounds // 10}
    return {
        name: Setting(f"{source.name}-{name}", Linear(), clients, law, tuple(RARE), options)
        for name, law in LAWS.items()
    }


def rule(alpha: float, gamma: float, scale: float) -> FedAvg | FedeRage:
    """The method at a point of the grid: step scale/kappa; at gamma = 0 FedeRage is FedAvg, bit for bit."""
    if gamma == 0.0:
        return FedAvg(step=scale)
    kappa = 1.0 - gamma + gamma / alpha
    return FedeRage(alpha=alpha, gamma=gamma, step=scale / kappa, beta_step=BETA_STEP)


def run(size: Size, out: Path, command: str, *, quiet: bool) -> pd.DataFrame:
    """The experiment at a size."""
    places = {source: settings(source) for source in size.sources}
    frames, scores = [], []
    for source, laws in places.items():
        scale, table = _chosen(source, laws, size, out / "choosing", quiet)
        scores.append(table)
        for law, one in laws.items():
            grid = {(1.0, 0.0): rule(1.0, 0.0, scale)}
            grid |= {(a, g): rule(a, g, scale) for a in size.alphas for g in size.gammas}
            named = {f"{alpha:g}-{gamma:g}": method for (alpha, gamma), method in grid.items()}
            jobs = one.jobs(named, size.seeds)
            part = len(size.gammas) * len(size.seeds) if source.side_by_side else len(size.seeds)
            # FedAvg, a method of its own, comes first: parts of one shape follow.
            runs = in_parts(jobs[: len(size.seeds)], out / "runs", part, quiet=True, title=one.name)
            runs += in_parts(
                jobs[len(size.seeds) :],
                out / "runs",
                part,
                side_by_side=source.side_by_side,
                quiet=quiet,
                title=one.name,
            )
            about = [(a, g, seed) for a, g in grid for seed in size.seeds]
            for (alpha, gamma, seed), found in zip(about, runs, strict=True):
                cell = {"data": source.name, "law": law, "alpha": alpha, "gamma": gamma, "seed": seed}
                frames.append(cell | views(found, one.rare, LAST))
    frame = pd.DataFrame(frames)
    table = _against_fedavg(frame)
    section = _section(size, frame, table, pd.concat(scores, ignore_index=True), command)
    write_section(out, section)
    if not quiet:
        print(in_terminal(section))
    return table


def _chosen(
    source: Source, laws: Mapping[str, Setting], size: Size, folder: Path, quiet: bool
) -> tuple[float, pd.DataFrame]:
    """The scale with the best mean validation accuracy over both laws and the points judged; all scores."""
    tables = []
    for one in laws.values():
        candidates = {f"alpha {a:g} gamma {g:g}": [rule(a, g, scale) for scale in SCALES] for a, g in JUDGED}
        _, table = choose(one, candidates, size.choosing, folder, side_by_side=source.side_by_side, quiet=quiet)
        tables.append(table.assign(scale=np.tile(SCALES, len(JUDGED))))
    scores = pd.concat(tables, ignore_index=True).drop(columns="chosen")
    best = max(SCALES, key=lambda scale: scores.loc[scores["scale"] == scale, "score"].mean())
    return best, scores.assign(data=source.name, chosen=scores["scale"] == best)


def _against_fedavg(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean over seeds of each cell and measure, and its paired difference to FedAvg (gamma = 0)."""
    lines = []
    for (data, law), place in frame.groupby(["data", "law"], sort=False):
        base = place[place["gamma"] == 0.0]
        for (alpha, gamma), part in place.groupby(["alpha", "gamma"], sort=False):
            for measure in MEASURES:
                ours, theirs = part[measure].to_numpy(), base[measure].to_numpy()
                found = paired_t(ours, theirs)
                apart = (found.difference, found.low, found.high)
                lines.append((data, law, alpha, gamma, measure, ours.mean(), *apart, found.pairs))
    names = ["data", "law", "alpha", "gamma", "measure", "mean", "difference", "low", "high", "seeds"]
    return pd.DataFrame(lines, columns=names)


def _section(size: Size, frame: pd.DataFrame, table: pd.DataFrame, scores: pd.DataFrame, command: str) -> Section:
    with style.settings():
        plots = [
            heatmaps(f"{data}-{law}", f"{data}, {law}", place, MEASURES)
            for (data, law), place in table.groupby(["data", "law"], sort=False)
        ]
    said = [f"{source.name}: {source.rounds:,} rounds, step {_scale(scores, source)}/kappa" for source in size.sources]
    text = [
        "Softmax regression, 30 clients with at most two classes each; clients 27, 28 and 29 hold classes 8 and 9. "
        "Skewed: three of 30 get through in a round, those three with probability 0.0107, 0.0078 and 0.0053. Uniform: "
        f"any three. {'; '.join(said)}; eta_beta {BETA_STEP}, 5 local steps, mini-batches of 32 rows, "
        f"{len(size.seeds)} seeds, means of the last {LAST} of ten evaluations on test rows.",
        "The row gamma = 0 is agnostic FedAvg; so is the column alpha = 1, where every loss is in the tail (the tests "
        "hold both to it), so that one run stands for all these cells. The step's scale was chosen by "
        "validation accuracy over both laws at (alpha, gamma) = "
        f"{', '.join(f'({a:g}, {g:g})' for a, g in JUDGED)}, seeds {', '.join(map(str, size.choosing))}.",
        "Differences to FedAvg are paired by seed; differences.csv has those of all cells.",
    ]
    tables = {
        f"{data}, {law}: cells with the most and the least, minus FedAvg": _extremes(place)
        for (data, law), place in table.groupby(["data", "law"], sort=False)
    }
    data = {"runs": frame, "differences": table, "chosen": scores}
    return Section(
        "federage-sensitivity", "FedeRage: sensitivity to alpha and gamma", text, command, tables, plots, data
    )


def _scale(scores: pd.DataFrame, source: Source) -> str:
    best = scores[(scores["data"] == source.name) & scores["chosen"]]
    return f"{best['scale'].iloc[0]:g}"


def _extremes(place: pd.DataFrame) -> Table:
    """For each measure: FedAvg, the best and the worst cell with intervals, and in how many cells it is better."""
    rows = []
    for measure, title in MEASURES.items():
        part = place[(place["measure"] == measure) & (place["gamma"] > 0)]
        sign, loss = (-1.0, True) if measure == "cvar_loss" else (1.0, False)
        base = float((part["mean"] - part["difference"]).iloc[0])
        ranked = part.iloc[np.argsort(-sign * part["difference"].to_numpy(), kind="stable")]
        cells = [_cell(ranked.iloc[0], loss), _cell(ranked.iloc[-1], loss)]
        better = int(((part["low"] > 0) if not loss else (part["high"] < 0)).sum())
        worse = int(((part["high"] < 0) if not loss else (part["low"] > 0)).sum())
        shown = f"{base:.2f}" if loss else f"{100 * base:.1f}"
        rows.append([title, shown, *cells, f"{better}, {worse} of {len(part)}"])
    return Table(["", "FedAvg", "best cell", "worst cell", "better, worse\n(whole interval)"], rows)


def _cell(line: pd.Series, loss: bool) -> str:
    found = points(line, 1.0, 2) if loss else points(line)
    return f"({line['alpha']:g}, {line['gamma']:g})\n{found}"

"""A numerical check of FedeRage's Theorems 1 and 2: how the averaged pair's excess falls with T."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np
import pandas as pd

import fedhedge as fh
from fedhedge.algorithms import Algorithm, FedeRage
from fedhedge.experiments.absolute_loss import Floats, losses, mass, optimum, problem, risk
from fedhedge.experiments.dro_cells import Part, finished
from fedhedge.report.layout import figure, headline
from fedhedge.report.plot import Plot
from fedhedge.report.section import Section, in_terminal, write_section
from fedhedge.report.style import MUTED, looks, settings
from fedhedge.report.tables import Table
from fedhedge.simulation.driver import Simulation
from fedhedge.simulation.options import Options
from fedhedge.simulation.side_by_side import together

LAWS = {
    "fixed size": fh.availability.FixedSize((8.0, 8.0, 4.0, 2.0, 0.5), size=2),
    "variable size": fh.availability.Independent((0.9, 0.7, 0.5, 0.3, 0.1)),
}
# (alpha, gamma), kappa = 1, 2.2, 4.2, 8.2; gamma = 0 is agnostic FedAvg, Theorem 1.
TAILS = ((1.0, 0.0), (0.4, 0.8), (0.2, 0.8), (0.1, 0.8))
HORIZONS, SEEDS = (300, 1_000, 3_000, 10_000, 30_000), 20
BALL, CAP = 5.0, 10.0
# Steps are these over kappa sqrt(T): of a grid with factors of 3, those with the least mean excess at T = 1,000 on
# seeds 100 to 107.
STEP, BETA_STEP = 3.0, 1.0


@dataclass(frozen=True)
class Cell:
    """One line of the table: a law, a tail, a horizon."""

    law: str
    alpha: float
    gamma: float
    rounds: int

    @property
    def kappa(self) -> float:
        """Bound on the weight of a step, 1 - gamma + gamma/alpha."""
        return 1.0 - self.gamma + self.gamma / self.alpha


def main(out: Path, *, fast: bool = False, quiet: bool = False) -> pd.DataFrame:
    """Write excess.csv, slopes.csv, figure and section to `out`; returns the table of slopes.

    excess: of the averaged (theta, beta) over the optimum of eq. (13) under the weights of availability, every
    mini-batch (one row) enumerated and the optimum by a linear programme; mean and standard error over seeds.
    slope: of log mean excess against log T by least squares; the theorems' bound has -1/2.
    """
    horizons, seeds = (HORIZONS[:3], 8) if fast else (HORIZONS, SEEDS)
    cells = [Cell(law, *tail, rounds) for law in LAWS for tail in TAILS for rounds in horizons]
    parts = {cell: _part(cell, range(seeds)) for cell in cells}
    kept = finished(out, list(parts.values()), quiet=quiet)
    lines = []
    for cell, one in parts.items():
        found = np.asarray(kept[one.name]["excess"])
        error = found.std(ddof=1) / seeds**0.5
        lines.append((cell.law, cell.alpha, cell.gamma, cell.kappa, cell.rounds, found.mean(), error, seeds))
    names = ["law", "alpha", "gamma", "kappa", "rounds", "excess", "error", "seeds"]
    table = pd.DataFrame(lines, columns=names)
    fits = []
    for (law, kappa), part in table.groupby(["law", "kappa"], sort=False):
        slope = np.polyfit(np.log(part["rounds"]), np.log(part["excess"]), 1)[0]
        fits.append((law, kappa, slope, part["excess"].iloc[-1]))
    slopes = pd.DataFrame(fits, columns=["law", "kappa", "slope", "excess at the end"])
    section = _section(table, slopes, "fedhedge reproduce federage-theory" + (" --fast" if fast else ""))
    write_section(out, section)
    if not quiet:
        print(in_terminal(section))
    return slopes


def _section(table: pd.DataFrame, slopes: pd.DataFrame, command: str) -> Section:
    horizons = table["rounds"].unique()
    text = [
        "Five clients with four rows each and the loss |x'w - y|, skewed availability, one row a mini-batch, one local "
        "step. Excess of the averaged pair (theta, beta) over the optimum of eq. (13) under the weights of "
        "availability, every mini-batch enumerated and the optimum by a linear programme.",
        f"Steps are {STEP:g}/(kappa sqrt(T)) and {BETA_STEP:g}/(kappa sqrt(T)); T from {horizons[0]:,} to "
        f"{horizons[-1]:,}; means over {table['seeds'].iloc[0]} seeds, ± is the standard error. The slope is that of "
        "log excess against log T; the theorems' bound has -1/2. kappa = 1 is agnostic FedAvg (gamma = 0).",
    ]
    rows = []
    for _, line in slopes.iterrows():
        own = table[(table["law"] == line["law"]) & (table["kappa"] == line["kappa"])]
        cells = [f"{found:.4f} ± {error:.4f}" for found, error in zip(own["excess"], own["error"], strict=True)]
        rows.append([f"{line['law']}, kappa {line['kappa']:g}", f"{line['slope']:.2f}".replace("-", "−"), *cells])
    heading = "Slope, and excess by T"
    tables = {heading: Table(["availability", "slope", *[f"T = {rounds:,}" for rounds in horizons]], rows)}
    title = "FedeRage, Theorems 1 and 2: excess of the averaged pair"
    data = {"excess": table, "slopes": slopes}
    return Section("federage-theory", title, text, command, tables, [plot(table)], data)


def _part(cell: Cell, seeds: Sequence[int]) -> Part:
    name = f"{cell.law}-{cell.alpha:g}-{cell.gamma:g}-{cell.rounds}".replace(" ", "-")
    described = dataclasses.asdict(cell) | {"seeds": list(seeds), "method": _method(cell).settings()}
    return Part(name, described, lambda: {"excess": excess(cell, seeds)}, {"excess": (len(seeds),)})


def _method(cell: Cell) -> Algorithm:
    scale = cell.kappa * cell.rounds**0.5
    return FedeRage(
        alpha=cell.alpha, gamma=cell.gamma, step=STEP / scale, beta_step=BETA_STEP / scale, ball=BALL, cap=CAP
    )


def excess(cell: Cell, seeds: Sequence[int]) -> Floats:
    """Excess of the averaged pair over the optimum for each seed."""
    clients, model = problem()
    runs = []
    for seed in seeds:
        options = Options(
            rounds=cell.rounds, local_steps=1, batch_size=1, seed=seed, evaluate_every=cell.rounds, evaluate_on=()
        )
        runs.append(Simulation(_method(cell), model, clients, LAWS[cell.law], options))
    together(runs)
    best = smallest(cell.law, cell.alpha, cell.gamma)
    pairs = [jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), run.state.average) for run in runs]
    return np.array([value(pair.theta, float(pair.beta), cell) - best for pair in pairs])


def value(w: Floats, beta: float, cell: Cell) -> float:
    """E[(1 - gamma) f + gamma (beta + (f - beta)_+ / alpha)], eq. (13), every row enumerated."""
    f = losses(w)
    inner = (1 - cell.gamma) * f + cell.gamma * (beta + np.maximum(f - beta, 0.0) / cell.alpha)
    return float(mass(LAWS[cell.law].weights()) @ inner)


@functools.cache
def smallest(law: str, alpha: float, gamma: float) -> float:
    """Minimum of eq. (13) over w and beta."""
    arguments = (tuple(LAWS[law].weights()), (alpha,), (gamma,))
    return risk(optimum(*arguments), *arguments)


def plot(table: pd.DataFrame) -> Plot:
    """Mean excess against T, both in logarithms, a line for each kappa and a panel for each law."""
    with settings():
        made, panels = figure([1.9] * table["law"].nunique(), left=0.62, right=0.1, top=0.38, bottom=0.5, gap=0.62)
        styles = looks([f"kappa = {kappa:g}" for kappa in table["kappa"].unique()])
        horizons = table["rounds"].unique()
        for axes, (law, part) in zip(panels, table.groupby("law", sort=False), strict=True):
            headline(axes, f"Excess of the averaged pair, {law}")
            for kappa, line in part.groupby("kappa", sort=False):
                label = f"kappa = {kappa:g}"
                style = styles[label]
                axes.plot(line["rounds"], line["excess"], color=style.colour, linestyle=style.dash, label=label)
            first = part.groupby("rounds")["excess"].max().iloc[0]
            axes.plot(
                horizons, first * (horizons / horizons[0]) ** -0.5, color=MUTED, linewidth=0.8, label="slope -1/2"
            )
            axes.set_xscale("log")
            axes.set_yscale("log")
            # Powers of ten as plain numbers: the figures do without mathematical typesetting.
            axes.set_xticks(horizons, [f"{rounds:,}" for rounds in horizons])
            axes.yaxis.set_major_formatter("{x:g}")
            axes.minorticks_off()
            axes.legend(fontsize="small")
        panels[-1].set_xlabel("rounds T")
    alt = f"Excess falls from {table['excess'].max():.3g} to {table['excess'].min():.3g} as T grows."
    return Plot("excess", alt, "Mean over seeds; thin grey: a slope of -1/2.", made)

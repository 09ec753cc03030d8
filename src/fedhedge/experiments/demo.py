"""The demonstration: four methods on digits, where three clients with rare classes seldom get through."""

from __future__ import annotations

import warnings
from pathlib import Path

from tqdm import tqdm

from fedhedge import files
from fedhedge.algorithms import Algorithm, FedAvg, FedeRage, FedProx, Scaffold
from fedhedge.availability import presets
from fedhedge.data import ByLabel, load
from fedhedge.evaluation import as_text, compare
from fedhedge.models import MLP
from fedhedge.report import write_plots, write_report
from fedhedge.simulation import Run, simulate

RARE = {27: (8,), 28: (8, 9), 29: (9,)}
METHODS: tuple[Algorithm, ...] = (FedAvg(step=0.1), FedProx(step=0.1), Scaffold(step=0.1), FedeRage())
SEEDS = 5
ROUNDS = 3000
TARGET = 0.85


def main(out: Path = Path("runs/demo"), *, quiet: bool = False) -> list[Run]:
    """Train every method with every seed, print the table, and write histories, plots and the page to `out`.

    Runs that are already there are not repeated, and an interrupted one is resumed. Every method sees the same
    clients, the same initial model, the same draws of who gets through and the same mini-batches for a seed.
    """
    clients = load("digits").partition(ByLabel(clients=30, classes_per_client=2, reserved=RARE), seed=0)
    law = presets.sporadic()
    jobs = [(method, seed) for method in METHODS for seed in range(SEEDS)]
    runs = []
    for method, seed in tqdm(jobs, desc="training", unit="run", disable=True if quiet else None):
        folder = out / f"{method.name}-{seed}"
        run = simulate(
            method, MLP(hidden=(32,)), clients, law, rounds=ROUNDS, seed=seed, checkpoint=folder, progress=False
        )
        run.save(folder / "run.npz")
        files.write_table(folder / "participation.parquet", run.participation)
        runs.append(run)
    table = compare(runs, rare=tuple(RARE), target=TARGET)
    files.write_text(out / "table.csv", table.to_csv())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        title = "fedhedge demo: digits, skewed availability"
        write_report(runs, out / "report.html", title=title, rare=tuple(RARE), target=TARGET)
        write_plots(runs, out / "plots", rare=tuple(RARE))
    if not quiet:
        print(as_text(table))
        print(f"\nReport: {out / 'report.html'}")
    return runs

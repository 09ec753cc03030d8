"""What FedeRage gains over FedAvg as local steps and rounds grow: choices that the paper leaves open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from fedhedge.algorithms import Algorithm, FedAvg, FedeRage, Scaffold
from fedhedge.data import ByLabel, load
from fedhedge.evaluation import by_client, paired_t
from fedhedge.evaluation.columns import as_percent, with_sd
from fedhedge.experiments.federage_table import CLIENTS, LAWS, RARE
from fedhedge.experiments.training import Job, train
from fedhedge.models import MLP
from fedhedge.report.curves import curve_plot
from fedhedge.report.plot import Plot
from fedhedge.report.section import Section, in_terminal, write_section
from fedhedge.report.style import looks, settings
from fedhedge.report.tables import Table
from fedhedge.simulation import Run

METHODS: dict[str, Algorithm] = {"FedAvg": FedAvg(step=0.1), "SCAFFOLD": Scaffold(step=0.03), "FedeRage": FedeRage()}
LOCAL_STEPS, SEEDS, ROUNDS, EVERY = (1, 2, 5, 10), (0, 1, 2, 3, 4), 5_000, 100
MARKS = (500, 1_000, 2_000, 5_000)
VIEWS: dict[str, Callable[[pd.DataFrame], pd.Series]] = {
    "mean": lambda table: table.mean(axis=1),
    "rare": lambda table: table[list(RARE)].mean(axis=1),
}
Curves = dict[tuple[int, str], pd.DataFrame]


def main(out: Path, *, fast: bool = False, quiet: bool = False) -> pd.DataFrame:
    """Train all methods with each number of local steps; write gains.csv, the figures and the section.

    gains: for each number of local steps, round and view, FedAvg's accuracy, and FedeRage's and SCAFFOLD's minus it
    over paired seeds with 95 % intervals, each the mean over the three evaluations up to that round.
    """
    steps, seeds, rounds = ((2, 5), (0, 1), 1_000) if fast else (LOCAL_STEPS, SEEDS, ROUNDS)
    runs = _runs(out, steps, seeds, rounds, quiet)
    curves = {view: _curves(runs, measure) for view, measure in VIEWS.items()}
    marks = [mark for mark in MARKS if mark <= rounds]
    table = pd.concat([_gains(curves[view], steps, marks, view) for view in VIEWS])
    section = Section(
        name="federage-local-steps",
        title="FedeRage against FedAvg by local steps and rounds",
        text=[
            "FashionMNIST under the skewed law of Table I; network with one hidden layer of 64, batches of 32; FedAvg "
            "with step .1, SCAFFOLD .03, FedeRage with its defaults (alpha .05, gamma .75, step .1/kappa); "
            f"{len(seeds)} seeds. Nothing is chosen: this shows what Table I's choice of local steps and rounds does. "
            "Accuracy in %, mean over the three evaluations up to the round; differences paired, with 95 % intervals.",
        ],
        command=f"fedhedge reproduce federage-local-steps{' --fast' if fast else ''}",
        tables={f"{'Client mean' if view == 'mean' else 'Rare clients'}": _shown(table, view) for view in VIEWS},
        plots=[_plot(curves["rare"], number) for number in steps],
        data={"gains": table},
    )
    write_section(out, section)
    if not quiet:
        print(in_terminal(section))
    return table


def _curves(runs: Mapping[tuple[int, str], Sequence[Run]], measure: Callable[[pd.DataFrame], pd.Series]) -> Curves:
    """Accuracy by round (index) and run (columns)."""
    return {key: pd.concat([measure(by_client(run)) for run in members], axis=1) for key, members in runs.items()}


def _runs(
    out: Path, steps: Sequence[int], seeds: Sequence[int], rounds: int, quiet: bool
) -> dict[tuple[int, str], list[Run]]:
    clients = load("fashion-mnist").partition(ByLabel(CLIENTS, classes_per_client=2, reserved=RARE), seed=0)
    law = LAWS["skewed"]()
    fixed = {"rounds": rounds, "evaluate_every": EVERY}
    return {
        (number, name): train(
            [
                Job(
                    f"{name}-{number}-{seed}",
                    method,
                    MLP(hidden=(64,)),
                    clients,
                    law,
                    {**fixed, "local_steps": number, "seed": seed},
                )
                for seed in seeds
            ],
            out / "runs",
            quiet=quiet,
            title=f"{name}, {number} local steps",
        )
        for number in steps
        for name, method in METHODS.items()
    }


def _gains(curves: Curves, steps: Sequence[int], marks: Sequence[int], view: str) -> pd.DataFrame:
    rows = []
    for number in steps:
        for mark in marks:
            ends = {name: curves[number, name].loc[:mark].tail(3).mean() for name in METHODS}
            base = ends["FedAvg"]
            row = {"view": view, "local_steps": number, "round": mark, "FedAvg": base.mean(), "sd": base.std(ddof=1)}
            for name in ("FedeRage", "SCAFFOLD"):
                found = paired_t(ends[name].to_numpy(), base.to_numpy())
                row |= {f"{name}": found.difference, f"{name}_low": found.low, f"{name}_high": found.high}
            rows.append(row)
    return pd.DataFrame(rows)


def _shown(table: pd.DataFrame, view: str) -> Table:
    head = ["local steps", "round", "FedAvg", "FedeRage − FedAvg", "SCAFFOLD − FedAvg"]
    rows: list[list[str]] = []
    strong = set()
    for line in table[table["view"] == view].to_dict("records"):
        row = [str(line["local_steps"]), f"{line['round']:,}", with_sd(as_percent, line["FedAvg"], line["sd"])]
        for name in ("FedeRage", "SCAFFOLD"):
            apart = [100 * line[key] for key in (name, f"{name}_low", f"{name}_high")]
            if apart[1] > 0 or apart[2] < 0:
                strong.add((len(rows), len(row)))
            row.append("{:+.1f} ({:+.1f} to {:+.1f})".format(*apart).replace("-", "−"))
        rows.append(row)
    return Table(head, rows, frozenset(strong))


def _plot(curves: Curves, number: int) -> Plot:
    data = {name: curves[number, name] for name in METHODS}
    with settings():
        title = f"Rare clients, {number} local step{'s' if number > 1 else ''}"
        return curve_plot(f"rare-{number}", title, data, looks(list(data)), True)

"""FedeRage, Fig. 1: five clusters in the plane, two of them seldom heard, and what each method makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from fedhedge.algorithms import Algorithm, FedAvg, FedeRage, FedProx, Scaffold
from fedhedge.availability import Independent
from fedhedge.data import Dominant, load
from fedhedge.evaluation import by_client
from fedhedge.experiments.federage_regions import regions
from fedhedge.experiments.federage_runs import (
    Setting,
    choose,
    chosen_table,
    differences,
    mean_weight,
    points,
    share,
    views,
)
from fedhedge.experiments.training import train
from fedhedge.models import MLP, Linear, Model
from fedhedge.report import style
from fedhedge.report.curves import curve_plot
from fedhedge.report.plot import Plot
from fedhedge.report.section import Section, in_terminal, write_section
from fedhedge.report.tables import Table
from fedhedge.simulation import Run

RARE = (3, 4)
PROBABILITIES = (0.3, 0.3, 0.3, 0.05, 0.05)
MODELS: dict[str, Model] = {"softmax": Linear(), "network": MLP(hidden=(16,))}
ROUNDS, EVERY, LAST = 500, 20, 5
CONTROL = "control"
MEASURES = {"common": "common", "rare": "rare", "worst": "worst client", "rare_all": "rare, all rounds"}


def federage(alpha: float, gamma: float, scale: float) -> FedeRage:
    """FedeRage with step scale/kappa."""
    kappa = 1.0 - gamma + gamma / alpha
    return FedeRage(alpha=alpha, gamma=gamma, step=scale / kappa, beta_step=0.003)


STEPS = (0.03, 0.1, 0.3)
CANDIDATES: Mapping[str, Sequence[Algorithm]] = {
    "FedAvg": [FedAvg(step=step) for step in STEPS],
    "FedProx": [FedProx(step=step, mu=mu) for step in STEPS for mu in (0.1, 1.0)],
    "SCAFFOLD": [Scaffold(step=step) for step in STEPS],
    "FedeRage": [federage(a, g, c) for a in (0.05, 0.1, 0.2) for g in (0.5, 0.9) for c in (0.1, 0.3, 1.0)],
}


@dataclass(frozen=True)
class Size:
    """How much is computed: models, seeds that are reported, and seeds that choose."""

    models: tuple[str, ...] = tuple(MODELS)
    seeds: tuple[int, ...] = tuple(range(20))
    choosing: tuple[int, ...] = (100, 101, 102)


def main(out: Path, *, fast: bool = False, quiet: bool = False) -> pd.DataFrame:
    """Choose, train, and write numbers, figures and section to `out`; returns the numbers of every run."""
    size = Size(("softmax",), tuple(range(4)), (100,)) if fast else Size()
    return run(size, out, "fedhedge reproduce federage-fig1" + (" --fast" if fast else ""), quiet=quiet)


def setting(model: str) -> Setting:
    """Cluster k at client k; clients 3 and 4 get through in one round out of twenty."""
    clients = load("clusters").partition(Dominant(clients=5, share=1.0), seed=0)
    options = {"rounds": ROUNDS, "evaluate_every": EVERY}
    return Setting(model, MODELS[model], clients, Independent(PROBABILITIES), RARE, options)


def run(size: Size, out: Path, command: str, *, quiet: bool) -> pd.DataFrame:
    """The experiment at a size."""
    settings = {model: setting(model) for model in size.models}
    lines, scores, groups = [], [], {}
    for model, one in settings.items():
        chosen, table = choose(one, CANDIDATES, size.choosing, out / "choosing", quiet=quiet, evaluate_every=50)
        scores.append(table)
        runs = train(
            one.jobs(chosen, size.seeds), out / "runs", side_by_side=True, quiet=quiet, title=f"training, {model}"
        )
        groups[model] = {label: runs[k * len(size.seeds) : (k + 1) * len(size.seeds)] for k, label in enumerate(chosen)}
        groups[model][CONTROL] = _control(one, groups[model]["FedeRage"], out / "runs")
        lines += [_line(model, label, run) for label, members in groups[model].items() for run in members]
    frame, choice = pd.DataFrame(lines), pd.concat(scores, ignore_index=True)
    section = _section(size, settings, groups, frame, choice, command)
    write_section(out, section)
    if not quiet:
        print(in_terminal(section))
    return frame


def _control(one: Setting, tailed: Sequence[Run], folder: Path) -> list[Run]:
    """FedAvg at FedeRage's step times the mean weight of its steps, seed by seed."""
    jobs = []
    for found in tailed:
        step = found.settings["algorithm"]["step"] * mean_weight(found)
        jobs += one.jobs({CONTROL: FedAvg(step=step)}, [found.settings["seed"]])
    return train(jobs, folder, side_by_side=True, quiet=True)


def _line(model: str, label: str, found: Run) -> dict[str, object]:
    weight = mean_weight(found) if label == "FedeRage" else 1.0
    rare = by_client(found).loc[1:, list(RARE)].to_numpy().mean()
    about = {
        "model": model,
        "method": label,
        "seed": found.settings["seed"],
        "step": found.settings["algorithm"]["step"],
    }
    return about | {"mean_weight": weight} | views(found, RARE, LAST) | {"rare_all": rare}


def _section(
    size: Size,
    settings: Mapping[str, Setting],
    groups: Mapping[str, Mapping[str, Sequence[Run]]],
    frame: pd.DataFrame,
    choice: pd.DataFrame,
    command: str,
) -> Section:
    first = size.models[0]
    apart = pd.concat(
        [
            differences(frame[frame["model"] == model], "method", "FedeRage", MEASURES).assign(model=model)
            for model in size.models
        ],
        ignore_index=True,
    )
    tables: dict[str, Table] = {}
    for model in size.models:
        tables[f"Accuracy, {model}, %"] = _table(frame[frame["model"] == model])
    for model in size.models:
        tables[f"FedeRage minus the others, {model}, points"] = _apart(apart[apart["model"] == model])
    tables["Chosen on validation rows"] = chosen_table(choice)
    with style.settings():
        maps = {label: members[0] for label, members in groups[first].items() if label != CONTROL}
        plots = [regions("regions", maps, settings[first].clients, RARE), *_curves(groups[first])]
    one = settings[first]
    weight = frame.loc[frame["method"] == "FedeRage", "mean_weight"]
    text = [
        f"Five Gaussian clusters round a circle, one class and one client each ({one.clients.counts('train')[0]} "
        f"training rows a client). In a round the first three clients get through with probability 0.3 each, the last "
        f"two with 0.05, independently; {100 * one.law.empty_probability():.0f} % of rounds are empty and change "
        f"nothing. The weights of the rare clients in the average are {one.law.weights()[-1]:.3f} each. The paper's "
        f"centres and spreads are not published: radius 2 and standard deviation 0.6 are ours.",
        f"{ROUNDS} rounds, 5 local steps, mini-batches of 32 rows, {len(size.seeds)} seeds; numbers are means over the "
        f"last {LAST} of the evaluations (every {EVERY} rounds) on test rows, ± is the standard deviation over seeds. "
        f"Hyper-parameters were chosen by accuracy on validation rows with seeds {size.choosing[0]} to "
        f"{size.choosing[-1]}.",
        f"Control: FedAvg at FedeRage's step times the mean weight of its steps ({weight.mean():.3f}, at most "
        f"{weight.max():.3f}), so that nothing but the choice of rows is different.",
    ]
    data = {
        "runs": frame,
        "differences": apart,
        "chosen": choice,
        "by_round": pd.concat([_by_round(model, found) for model, found in groups.items()], ignore_index=True),
    }
    title = "FedeRage, Fig. 1: five clusters, two seldom heard"
    return Section("federage-fig1", title, text, command, tables, plots, data)


def _table(frame: pd.DataFrame) -> Table:
    rows = [
        [str(label), *[share(part[measure]) for measure in MEASURES]]
        for label, part in frame.groupby("method", sort=False)
    ]
    return Table(["method", *MEASURES.values()], rows)


def _apart(apart: pd.DataFrame) -> Table:
    rows = []
    for label, part in apart.groupby("minus", sort=False):
        rows.append([str(label), *[points(line) for _, line in part.iterrows()]])
    return Table(["minus", *MEASURES.values()], rows)


VIEWS: dict[str, tuple[str, Callable[[pd.DataFrame], pd.Series]]] = {
    "common": ("Test accuracy of the three common clients", lambda table: table.drop(columns=list(RARE)).mean(axis=1)),
    "rare": ("Test accuracy of the two rare clients", lambda table: table[list(RARE)].mean(axis=1)),
    "worst": ("Test accuracy of the worst client", lambda table: table.min(axis=1)),
}


def _curves(groups: Mapping[str, Sequence[Run]]) -> list[Plot]:
    shown = style.looks(list(groups))
    plots = []
    for name, (title, view) in VIEWS.items():
        data = {
            label: pd.concat([view(by_client(run)) for run in members], axis=1) for label, members in groups.items()
        }
        plots.append(curve_plot(name, title, data, shown, True, "Mean and standard deviation over seeds."))
    return plots


def _by_round(model: str, groups: Mapping[str, Sequence[Run]]) -> pd.DataFrame:
    parts = []
    for label, members in groups.items():
        for found in members:
            table = pd.DataFrame({name: view(by_client(found)) for name, (_, view) in VIEWS.items()}).reset_index()
            parts.append(table.assign(model=model, method=label, seed=found.settings["seed"]))
    return pd.concat(parts, ignore_index=True)

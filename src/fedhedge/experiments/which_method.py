"""All methods on three data sets under three laws of availability: what each gains, and what it costs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from fedhedge import files
from fedhedge.algorithms import Algorithm
from fedhedge.availability import FixedSize, Law, presets
from fedhedge.data import ByLabel, Clients, load
from fedhedge.data.arrays import lock
from fedhedge.evaluation import by_client
from fedhedge.experiments import which_method_text
from fedhedge.experiments.training import Job, train
from fedhedge.experiments.which_methods import MATRIX_ROUNDS, METHODS, SCALES, Method
from fedhedge.models import MLP, CrammerSinger, Linear, Model
from fedhedge.simulation import Run

CLIENTS, PER_ROUND = 30, 3
RARE = (27, 28, 29)


LAWS: dict[str, Callable[[], Law]] = {
    "even": lambda: FixedSize(size=PER_ROUND),
    # The rare clients come less than half as often as the others, and more often than 1/30, so that weighting can
    # make them count like the others; under the last law it cannot.
    "uneven": lambda: presets.sporadic(CLIENTS, PER_ROUND, dict.fromkeys(RARE, 0.045)),
    "sporadic": lambda: presets.sporadic(CLIENTS, PER_ROUND),
}


@dataclass(frozen=True)
class Setting:
    """A data set: classes that only the rare clients hold, model, rounds, and whether exact solvers are affordable."""

    reserved: Mapping[int, tuple[int, ...]]
    model: Model
    rounds: int = 2_000
    solvers: bool = False
    every: int = 1

    def clients(self, name: str) -> Clients:
        """Thirty clients with two classes each at most, and one in `every` of their rows."""
        whole = load(name).partition(ByLabel(CLIENTS, classes_per_client=2, reserved=self.reserved), seed=0)
        return thinned(whole, self.every)


DIGITS = {27: (8,), 28: (8, 9), 29: (9,)}
FAULT = dict.fromkeys(RARE, (3,))
DATA = {
    "digits": Setting(DIGITS, MLP(hidden=(32,))),
    "fashion-mnist": Setting(DIGITS, Linear(), rounds=1_000, every=10),
    "pump": Setting(FAULT, MLP(hidden=(32,)), solvers=True),
}


@dataclass(frozen=True)
class Size:
    """How much is computed. As many seeds as search runs, so that both are computed by one programme.

    part: of the rounds of a setting, one in so many is done.
    """

    data: tuple[str, ...] = tuple(DATA)
    laws: tuple[str, ...] = tuple(LAWS)
    methods: tuple[str, ...] = tuple(METHODS)
    part: int = 1
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    search_seeds: tuple[int, ...] = (100, 101)


FAST = Size(
    data=("digits",),
    laws=("sporadic",),
    methods=("FedAvg", "FedeRage", "ControlledFedeRage", "Scaffold", "Mifa", "ArrivalWeights", "FedAvot", "DpSgd"),
    part=4,
    seeds=(0, 1, 2),
    search_seeds=(100,),
)


def main(out: Path, *, fast: bool = False, quiet: bool = False) -> pd.DataFrame:
    """Train everything, and write the tables, the figures and the section; returns the table of final numbers.

    Of three values of its main setting each method has the one with the best client mean of validation accuracy, for
    each data set and law anew.
    """
    return run(FAST if fast else Size(), out, fast=fast, quiet=quiet)


def run(size: Size, out: Path, *, fast: bool = False, quiet: bool = False) -> pd.DataFrame:
    """`main` for a stated size."""
    cells = [
        (data, law, name)
        for data in size.data
        for law in size.laws
        for name in size.methods
        if DATA[data].solvers or not METHODS[name].solver
    ]
    found: dict[tuple[str, str], dict[str, list[Run]]] = {}
    chosen = []
    held: dict[str, Clients] = {}
    # What is missing shows now, and not after the hours of the sets before it.
    for data in size.data:
        DATA[data].clients(data)
    with tqdm(cells, unit="cell", disable=True if quiet else None) as bar:
        for data, law, name in bar:
            bar.set_description(f"{data}, {law}, {name}")
            if data not in held:
                held = {data: DATA[data].clients(data)}
            folder = out / "runs" / data / law
            scale, runs = _cell(size, DATA[data], held[data], LAWS[law](), name, folder)
            chosen.append({"data": data, "law": law, "method": name, **runs[0].settings["algorithm"], "scale": scale})
            found.setdefault((data, law), {})[name] = runs
    files.write_text(out / "chosen.csv", pd.DataFrame(chosen).to_csv(index=False))
    return which_method_text.write(out, found, rare=RARE, fast=fast, quiet=quiet)


def _cell(size: Size, setting: Setting, clients: Clients, law: Law, name: str, folder: Path) -> tuple[float, list[Run]]:
    """The scale that validation rows choose, and the runs that are reported."""
    method = METHODS[name]
    if method.matrix:
        clients = in_unit_ball(clients)
    made = [method.make(scale, law) for scale in SCALES]
    tried = [
        _job(f"{name}-{k}-{seed}", size, method, algorithm, setting, clients, law, seed, "validation")
        for k, algorithm in enumerate(made)
        for seed in size.search_seeds
    ]
    scores = [by_client(run, split="validation").tail(3).to_numpy().mean() for run in _train(tried, method, folder)]
    best = int(np.argmax(np.reshape(scores, (len(made), -1)).mean(axis=1)))
    final = [
        _job(f"{name}-{seed}", size, method, made[best], setting, clients, law, seed, "test") for seed in size.seeds
    ]
    return SCALES[best], _train(final, method, folder)


def _train(jobs: Sequence[Job], method: Method, folder: Path) -> list[Run]:
    return train(jobs, folder, side_by_side=not method.solver, quiet=True)


def _job(
    name: str,
    size: Size,
    method: Method,
    algorithm: Algorithm,
    setting: Setting,
    clients: Clients,
    law: Law,
    seed: int,
    split: str,
) -> Job:
    rounds = MATRIX_ROUNDS if method.matrix else setting.rounds // size.part
    options = {"rounds": rounds, "seed": seed, "evaluate_every": rounds // 20 or 1, "evaluate_on": (split,)}
    # Of three candidates the one that diverges is a bad one, not the end of all runs beside it.
    options |= {"on_nonfinite": "skip"} | ({"local_steps": 1, "batch_size": None} if method.matrix else {})
    model = CrammerSinger() if method.matrix else setting.model
    return Job(name, algorithm, model, clients, law, options)


def thinned(clients: Clients, every: int) -> Clients:
    """One in `every` rows of each client in each split; many methods look at all rows of a client in every round."""
    if every == 1:
        return clients
    columns = (clients.features, clients.labels, clients.client, clients.split)
    described = {**clients.description, "one_row_in": every}
    features, labels, client, split = (lock(np.ascontiguousarray(column[::every])) for column in columns)
    return dataclasses.replace(
        clients, features=features, labels=labels, client=client, split=split, description=described
    )


def in_unit_ball(clients: Clients) -> Clients:
    """The same clients with rows [n, P] of norm 1 at most, as the robust and private methods take them."""
    flat = np.reshape(clients.features, (len(clients.features), -1)).astype(np.float64)
    norms = np.linalg.norm(flat, axis=1, keepdims=True)
    described = {**clients.description, "rows": "in the unit ball"}
    return dataclasses.replace(clients, features=lock(flat / np.maximum(1.0, norms)), description=described)

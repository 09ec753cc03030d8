"""A configuration: the tables of a file, and the arguments of `simulate` that they stand for."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fedhedge import data
from fedhedge.algorithms import METHODS, Algorithm
from fedhedge.availability import LAWS, Law, presets
from fedhedge.checks import InvalidInput
from fedhedge.config.read import override, read_toml
from fedhedge.config.tables import Parameters, below, check_keys, choose, parameters, pick, settle, table
from fedhedge.data import partitioners
from fedhedge.data.registry import SOURCES
from fedhedge.models import ARCHITECTURES
from fedhedge.simulation.faults import Faults
from fedhedge.simulation.options import Options

FOLDER = "folder"
EVERY_ROW = "all"
PARTITIONERS = {
    name: rule
    for name, rule in vars(partitioners).items()
    if inspect.isclass(rule) and issubclass(rule, data.Partitioner) and not inspect.isabstract(rule)
}
PRESETS = {
    name: make
    for name, make in vars(presets).items()
    if inspect.isfunction(make) and make.__module__ == presets.__name__ and not name.startswith("_")
}
AVAILABILITY: dict[str, Callable[..., Law]] = {**LAWS, **PRESETS}
# What a table asks for by `name`, with an example for those who leave it out.
CHOICES: dict[str, tuple[Mapping[str, Callable[..., Any]], str]] = {
    "partition": (PARTITIONERS, 'name = "ByLabel" and clients = 30'),
    "availability": (AVAILABILITY, 'name = "FixedSize" and size = 3'),
    "model": (ARCHITECTURES, 'name = "MLP"'),
    "algorithm": (METHODS, 'name = "FedeRage"'),
}
FAULTS = "faults"
TABLES = ("data", *CHOICES, FAULTS)
# What an algorithm writes for `law` when it is to know the law of the file's own table.
OWN_LAW = "availability"
DEALING = parameters(data.Dataset.partition, "self", "partitioner")
TOP = parameters(Options, "loop", FAULTS)
ELSEWHERE = {
    key: f"did you mean {where}.{key}?"
    for where, (registry, _) in CHOICES.items()
    for make in registry.values()
    for key in parameters(make)
}
ABOVE = dict.fromkeys(TOP, "a key of the whole file: it stands above the first table")


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read a TOML file, set single keys ("algorithm.alpha=0.1", in order), and check the result.

    Raises InvalidInput that names the key in full, the value received, and what is allowed.
    """
    content = read_toml(Path(path))
    override(content, overrides)
    return Config(content, Path(path).stem)


class Config:
    """A checked configuration: top-level keys, and one table each for data, partition, availability, model, algorithm.

    The keys of a table are the parameters of what its `name` (for data: `source`) makes. A `seed` that a table does
    not give is the top-level one; `clients`, `labels`, `classes` and `sizes` of an availability law are taken from
    the data. A method around another one has it as the table `algorithm.base`; one that is told the availability law
    has `law = "availability"` for the file's own, or a table. The table `faults` may be left out. `settings` holds
    every key with its value, defaults included.
    Raises InvalidInput. Files of data are opened only when the law or `clients` needs them.
    """

    def __init__(self, content: Mapping[str, Any], name: str) -> None:
        self.name = name
        self.settings: dict[str, Any] = {}
        check_keys(content, (*TOP, *TABLES), "", ELSEWHERE)
        self.options = self._top(pick(content, TOP), content.get(FAULTS))
        self._load, self._source = self._data(table(content.get("data"), "data", 'source = "digits"'))
        self.partitioner: data.Partitioner | None = None
        if self.settings["data"]["source"] == FOLDER:
            if "partition" in content:
                raise InvalidInput("partition", content["partition"], "no such table where each file is a client")
        else:
            self.partitioner, values = self._make("partition", content, DEALING)
            self._dealing = pick(values, DEALING)
        self.model, _ = self._make("model", content)
        found = table(content.get("availability"), "availability", CHOICES["availability"][1])
        self.law, self.settings["availability"] = self._law(found, "availability", self._from_data())
        with below("availability"):
            self.law = self.law.bind(self.number_of_clients)
        self.options.steps(self.number_of_clients)
        given = table(content.get("algorithm"), "algorithm", CHOICES["algorithm"][1])
        self.algorithm, self.settings["algorithm"] = self._method(given, "algorithm")

    @property
    def number_of_clients(self) -> int:
        """N, known without opening the data where they are partitioned."""
        return len(self.clients) if self.partitioner is None else self.partitioner.clients

    @cached_property
    def clients(self) -> data.Clients:
        """The clients with their rows, loaded on first use.

        Raises InvalidInput, MissingData and CorruptData.
        """
        with below("data"):
            found = self._load(**self._source)
        if isinstance(found, data.Clients):
            return found
        assert self.partitioner is not None
        with below("partition"):
            return found.partition(self.partitioner, **self._dealing)

    def simulation(self) -> dict[str, Any]:
        """The arguments of `fedhedge.simulate`; loads the data.

        Raises InvalidInput, MissingData and CorruptData.
        """
        clients = self.clients
        with below("model"):
            self.model.build(clients.features.shape[1:], len(clients.classes or ()))
        made = {"algorithm": self.algorithm, "model": self.model, "clients": clients, "law": self.law}
        return made | {field.name: getattr(self.options, field.name) for field in dataclasses.fields(self.options)}

    def _top(self, content: dict[str, Any], found: Any) -> Options:
        faults = self._faults(found)
        values = settle(content, TOP, "", {}, {})
        size = values["batch_size"]
        if isinstance(size, str) and size != EVERY_ROW:
            raise InvalidInput("batch_size", size, f'a whole number, 1 or more, or "{EVERY_ROW}"')
        self.settings |= values
        return Options(**values | {"batch_size": None if size == EVERY_ROW else size}, faults=faults)

    def _faults(self, content: Any) -> Faults | None:
        if content is None:
            return None
        values = settle(table(content, FAULTS, "lost = 0.1"), parameters(Faults), FAULTS, {}, {}, "faults")
        self.settings[FAULTS] = values
        with below(FAULTS):
            return Faults(**values)

    def _data(self, content: dict[str, Any]) -> tuple[Callable[..., data.Dataset | data.Clients], dict[str, Any]]:
        """The function that reads the data, and its arguments."""
        name, source = choose(content, "data", "source", {**SOURCES, FOLDER: None})
        if source is None:
            values = self._settle(content, parameters(data.Clients.from_folder), "data", FOLDER)
            self.settings["data"] = {"source": FOLDER, **values}
            return data.Clients.from_folder, values
        known = parameters(source.function(), "root")
        if source.files is not None:
            known["root"] = parameters(data.load)["root"]
        values = self._settle(content, known, "data", name)
        # Where files lie is not what they are: a run may go on where the data have moved.
        self.settings["data"] = {"source": name} | {key: value for key, value in values.items() if key != "root"}
        return data.load, {"name": name, **values}

    def _make(self, where: str, content: Mapping[str, Any], also: Parameters | None = None) -> tuple[Any, Any]:
        """What a table names, made from its keys; and these with their values, those of `also` included."""
        registry, example = CHOICES[where]
        given = table(content.get(where), where, example)
        name, make = choose(given, where, "name", registry)
        values = self._settle(given, parameters(make) | dict(also or {}), where, name)
        self.settings[where] = {"name": name, **values}
        with below(where):
            return make(**pick(values, parameters(make))), values

    def _method(self, content: dict[str, Any], where: str) -> tuple[Algorithm, dict[str, Any]]:
        """The method that a table describes, with the method and the law nested in it; and its keys with values."""
        name, make = choose(content, where, "name", METHODS)
        known = parameters(make)
        if "base" in known and "base" not in content:
            content["base"] = {"name": known["base"].default.name}
        if "law" in known:
            content.setdefault("law", None)
        values = self._settle(content, known, where, name)
        settings = {"name": name, **values}
        if "base" in known:
            inner = table(values["base"], f"{where}.base", 'name = "FedAvg"')
            values["base"], settings["base"] = self._method(inner, f"{where}.base")
        if "law" in known and values["law"] != OWN_LAW:
            example = f'{CHOICES[OWN_LAW][1]}; or law = "{OWN_LAW}", the law of the file itself'
            inner = table(values["law"], f"{where}.law", example)
            values["law"], settings["law"] = self._law(inner, f"{where}.law", self._from_data())
        elif "law" in known:
            values["law"] = self.law
        with below(where):
            made = make(**values)
            made.fits(self.number_of_clients)
        return made, settings

    def _law(
        self, content: dict[str, Any], where: str, from_data: Mapping[str, Callable[[], Any]]
    ) -> tuple[Law, dict[str, Any]]:
        """The law that a table describes, with laws nested in it; and its keys with their values."""
        name, make = choose(content, where, "name", AVAILABILITY)
        known = parameters(make)
        derived = {key: value for key, value in from_data.items() if key in known and key not in content}
        values = self._settle(content, {key: known[key] for key in known if key not in derived}, where, name)
        settings = {"name": name, **values}
        if "law" in values:
            # The clients of a law over groups are groups, of which the data say nothing.
            inner = table(values["law"], f"{where}.law", CHOICES["availability"][1])
            nested = {} if "groups" in known else from_data
            values["law"], settings["law"] = self._law(inner, f"{where}.law", nested)
        with below(where):
            return make(**values, **{key: value() for key, value in derived.items()}), settings

    def _from_data(self) -> dict[str, Callable[[], Any]]:
        return {
            "clients": lambda: self.number_of_clients,
            "labels": lambda: [np.flatnonzero(row).tolist() for row in self.clients.label_counts().to_numpy()],
            "classes": lambda: len(self.clients.classes or ()),
            "sizes": lambda: self.clients.counts("train").tolist(),
        }

    def _settle(self, content: Mapping[str, Any], known: Parameters, where: str, whose: str) -> dict[str, Any]:
        return settle(content, known, where, {"seed": self.options.seed}, ABOVE, whose)

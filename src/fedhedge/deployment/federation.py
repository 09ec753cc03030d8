"""federation.toml: a configuration file as in simulation, and the table [federation] of what the sites agree upon."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fedhedge import checks, data, files, streams
from fedhedge.algorithms import METHODS, Algorithm
from fedhedge.algorithms.private import Private
from fedhedge.checks import InvalidInput
from fedhedge.config.config import ABOVE, ELSEWHERE, FOLDER, TABLES, TOP, Config
from fedhedge.config.read import override, read_toml
from fedhedge.config.tables import below, check_keys, choose, parameters, pick, settle, table
from fedhedge.data import splits
from fedhedge.deployment.masking_mean import check_mean
from fedhedge.deployment.masking_terms import Masking
from fedhedge.deployment.programme import Programme
from fedhedge.privacy import Privacy

FEDERATION, MASKING, PRIVACY = "federation", "masking", "privacy"
ONLINE, LAW = "online", "law"
NOISE = ("noise", "lambda_noise")
EXAMPLE = 'sites = ["north", "east"], features = ["flow"] and classes = ["healthy", "leak"]'


@dataclass(frozen=True)
class Terms:
    """What every site must agree upon about the tables.

    sites: their names, in the order of client numbers. features: columns; a table column -> [low, high] brings each to
    [-1, 1] and clips it there, a list takes them as they are. classes: all labels that may occur. constant: the value
    of a feature appended to every row, which gives a linear model its intercept; 0: none.
    Raises InvalidInput.
    """

    sites: tuple[str, ...]
    features: tuple[str, ...] | dict[str, tuple[float, float]]
    classes: tuple[Any, ...]
    constant: float = 0.0

    def __post_init__(self) -> None:
        for name, least in (("sites", 1), ("features", 1), ("classes", 2)):
            given = getattr(self, name)
            plain = isinstance(given, list | tuple) or (name == "features" and isinstance(given, Mapping))
            simple = plain and all(isinstance(entry, str | int | float) for entry in given)
            if not simple or len(given) < least or len(set(given)) < len(given):
                raise InvalidInput(name, given, f"a list of {least} or more different entries")
        bounds = self.features
        if isinstance(bounds, Mapping):
            found = {str(column): checks.numbers_of(f"features.{column}", ends) for column, ends in bounds.items()}
            for column, ends in found.items():
                if len(ends) != 2 or ends[0] >= ends[1]:
                    raise InvalidInput(f"features.{column}", ends, "two numbers [low, high] with low < high")
            object.__setattr__(self, "features", found)
        else:
            object.__setattr__(self, "features", tuple(map(str, bounds)))
        for name in self.sites:
            if not isinstance(name, str) or not name.replace("-", "").replace("_", "").isalnum():
                raise InvalidInput("sites", name, "names of letters, digits, - and _")
        object.__setattr__(self, "sites", tuple(self.sites))
        object.__setattr__(self, "classes", tuple(self.classes))
        object.__setattr__(self, "constant", checks.number("constant", self.constant, low=0.0))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the features in their order."""
        return tuple(self.features)

    @property
    def ordered(self) -> list[Any]:
        """The features with their bounds as a list, since their order is part of what is agreed."""
        bounds = self.features
        return [[name, *bounds[name]] for name in bounds] if isinstance(bounds, dict) else list(bounds)

    @property
    def width(self) -> int:
        """Features of a row, the constant one included."""
        return len(self.features) + (self.constant > 0.0)


@dataclass(frozen=True)
class Conduct:
    """How the coordinator runs a round; no part of the agreement, and no site needs to know it.

    deadline: seconds within which a site has to answer. at_least: sites that have to be online before a round begins,
    patience: seconds for which the coordinator waits for them, then the round goes on with who is there. enrolment: the
    same before the first round, without which there is no run. asks: "online" asks every site online, "law" those that
    the table [availability] draws, as in simulation. largest_norm: the l2 norm above which an upload is left out.
    Raises InvalidInput.
    """

    deadline: float = 120.0
    at_least: int = 1
    patience: float = 600.0
    enrolment: float = 3600.0
    asks: str = ONLINE
    largest_norm: float = 1e6

    def __post_init__(self) -> None:
        for name in ("deadline", "patience", "enrolment", "largest_norm"):
            checks.number(name, getattr(self, name), above=0.0)
        checks.integer("at_least", self.at_least, low=1)
        checks.one_of("asks", self.asks, (ONLINE, LAW))


class Federation(Config):
    """A checked federation.toml.

    Beside the tables of a simulation it has [federation] with the keys of `Terms` and `Conduct`; [federation.masking]
    with those of `Masking`, which may be none, where uploads are to be added up unseen; and, for a private method whose
    noise is not given, [privacy] with epsilon and delta. [data] may be left out but for `label`; its
    `path` is for simulations of the same file. Without [availability] everyone takes part.
    Raises InvalidInput.
    """

    def __init__(self, content: Mapping[str, Any], name: str) -> None:
        content = {key: dict(value) if isinstance(value, Mapping) else value for key, value in content.items()}
        known = parameters(Terms) | parameters(Conduct)
        elsewhere = ELSEWHERE | {key: f"did you mean {FEDERATION}.{key}?" for key in known}
        check_keys(content, (*TOP, *TABLES, FEDERATION, PRIVACY), "", elsewhere)
        agreed = table(content.pop(FEDERATION, None), FEDERATION, EXAMPLE)
        masking = agreed.pop(MASKING, None)
        given = settle(agreed, known, FEDERATION, {}, ABOVE)
        with below(FEDERATION):
            self.terms = Terms(**pick(given, parameters(Terms)))
            self.conduct = Conduct(**pick(given, parameters(Conduct)))
        self.masking = None if masking is None else _masking(masking, len(self.terms.sites))
        content.setdefault("availability", {"name": "Everyone"})
        described = table(content.get("data", {}), "data", 'label = "fault"')
        described = {"source": FOLDER, "path": "sites", "scaling": "none", **described}
        for key, value in (("source", FOLDER), ("scaling", "none")):
            if described[key] != value:
                raise InvalidInput(f"data.{key}", described[key], f'"{value}": each site reads its own file')
        content["data"] = described
        self.privacy = _budget(content.pop(PRIVACY, None))
        super().__init__(content, name)
        with below("data"):
            splits.check_fractions(self.settings["data"]["validation"], self.settings["data"]["test"])
            streams.check_seed(self.settings["data"]["seed"])
        if self.options.faults is not None:
            raise InvalidInput("faults", self.settings["faults"], "no such table: what goes wrong here is real")
        if self.conduct.at_least > self.number_of_clients:
            raise InvalidInput("federation.at_least", self.conduct.at_least, f"up to {self.number_of_clients} sites")
        if self.masking is not None:
            check_mean(self.programme)

    @property
    def number_of_clients(self) -> int:
        return len(self.terms.sites)

    @property
    def clients(self) -> data.Clients:
        raise InvalidInput("availability", self.settings.get("availability"), "a law that needs no look at the rows")

    def _method(self, content: dict[str, Any], where: str) -> tuple[Algorithm, dict[str, Any]]:
        if self.privacy is not None and where == "algorithm":
            content = self._calibrated(content, self.privacy)
        return super()._method(content, where)

    def _calibrated(self, content: dict[str, Any], budget: Privacy) -> dict[str, Any]:
        """The table [algorithm] with the noise that follows from [privacy]."""
        described = dict(content)
        name, method = choose(described, "algorithm", "name", METHODS)
        if not issubclass(method, Private):
            raise InvalidInput(PRIVACY, vars(budget), f"no such table: {name} adds no noise")
        for key in NOISE:
            if key in described:
                allowed = "no such key beside the table [privacy], from which it follows"
                raise InvalidInput(f"algorithm.{key}", described[key], allowed)
        rounds = self.options.rounds
        values = settle(described, parameters(method, *NOISE), "algorithm", {"rounds": rounds}, ABOVE, name)
        with below("algorithm"):
            made = method.calibrated(budget, values.pop("rounds", rounds), **values)
        return content | {key: getattr(made, key) for key in (*NOISE, "rounds") if hasattr(made, key)}

    @property
    def agreement(self) -> dict[str, Any]:
        """All that a site's work depends on, as plain values."""
        described = {key: value for key, value in self.settings["data"].items() if key not in ("path", "source")}
        options = self.options.settings()
        for mine in ("evaluate_every", "evaluate_on", "on_nonfinite", "faults"):
            options.pop(mine, None)
        found: dict[str, Any] = files.plain(
            {
                "algorithm": self.algorithm.settings(),
                "model": self.model.settings(),
                "data": described,
                "terms": vars(self.terms) | {"features": self.terms.ordered},
                "options": options,
            }
            | ({} if self.masking is None else {"masking": vars(self.masking)})
        )
        return found

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the agreement: by it sites recognise an experiment that they agreed to."""
        return hashlib.sha256(json.dumps(self.agreement, sort_keys=True).encode()).hexdigest()

    @cached_property
    def programme(self) -> Programme:
        """What coordinator and sites compute alike."""
        shape = (self.terms.width,)
        return Programme(
            self.algorithm, self.model, self.options, self.number_of_clients, shape, len(self.terms.classes)
        )


def load_federation(path: str | Path, overrides: Sequence[str] = ()) -> Federation:
    """Read federation.toml, with single keys set as `fedhedge run --set` does; raises InvalidInput."""
    content = read_toml(Path(path))
    override(content, overrides)
    return Federation(content, Path(path).stem)


def _masking(given: Any, sites: int) -> Masking:
    where = f"{FEDERATION}.{MASKING}"
    values = settle(table(given, where, "signed = true"), parameters(Masking), where, {}, {})
    with below(where):
        made = Masking(**values)
    with below(FEDERATION):
        return made.of(sites)


def _budget(given: Any) -> Privacy | None:
    if given is None:
        return None
    values = settle(table(given, PRIVACY, "epsilon = 3.0 and delta = 1e-6"), parameters(Privacy), PRIVACY, {}, {})
    with below(PRIVACY):
        return Privacy(**values)

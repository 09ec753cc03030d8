"""Runs put together by method: those that differ only in the seed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fedhedge import checks
from fedhedge.evaluation.settings import REDRAWN, differing, flatten

if TYPE_CHECKING:
    from fedhedge.simulation import Run

# Follows from the other hyper-parameters.
_DERIVED = ".kappa"
_LONGEST_VALUE = 24
ORACLE = "(oracle)"
EVERYONE = "Everyone"


def group(runs: Sequence[Run] | Mapping[str, Sequence[Run]]) -> dict[str, list[Run]]:
    """Runs by method, in the order of their first appearance: label -> runs, which differ only in the seed.

    Rows that were dealt to clients anew for each seed still are the same method. The label is the algorithm's name
    (for a method around another one: both), with the settings that differ where a name appears twice, and "(oracle)"
    behind it when the method was told the availability law, or had everyone in each round where others had not. A
    mapping keeps its own labels, but for that.
    Raises InvalidInput when there is no run, a label has none, or a seed twice.
    """
    if isinstance(runs, Mapping):
        groups = {label: list(members) for label, members in runs.items()}
    else:
        found = [part for candidates in _split(runs, ("seed", *REDRAWN)) for part in _by_draw(candidates)]
        groups = dict(zip(_labels(found), found, strict=True))
    laws = {_law(run) for members in groups.values() for run in members}
    groups = {_marked(label, members, laws): members for label, members in groups.items()}
    if not groups or not all(groups.values()):
        raise checks.InvalidInput("runs", {label: len(members) for label, members in groups.items()}, _ALLOWED)
    for label, members in groups.items():
        if _seed_twice(members):
            raise checks.InvalidInput(f"seeds of {label}", [run.settings["seed"] for run in members], "each seed once")
    return groups


_ALLOWED = "at least one run for each method"


def _split(runs: Iterable[Run], ignored: tuple[str, ...]) -> list[list[Run]]:
    """Runs with equal settings, `ignored` ones aside, together."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        settings = {key: value for key, value in flatten(run.settings).items() if key not in ignored}
        found.setdefault(json.dumps(settings, sort_keys=True), []).append(run)
    return list(found.values())


def _by_draw(runs: list[Run]) -> list[list[Run]]:
    """Runs of one method, kept apart by how the rows were dealt if a seed appears with more than one dealing."""
    return _split(runs, ("seed",)) if _seed_twice(runs) else [runs]


def _seed_twice(runs: Sequence[Run]) -> bool:
    return len({run.settings["seed"] for run in runs}) < len(runs)


def _name(runs: Sequence[Run]) -> str:
    return method_name(runs[0].settings["algorithm"])


def method_name(settings: Mapping[str, Any]) -> str:
    """Name of a method by its settings, with that of the one it is around unless that is FedAvg: FedAvot/FedeRage."""
    name, inner = str(settings["name"]), method_name(settings["base"]) if "base" in settings else "FedAvg"
    return name if inner == "FedAvg" else f"{name}/{inner}"


def is_oracle(settings: Mapping[str, Any]) -> bool:
    """Whether a method, or one that it is around, was told the availability law."""
    return bool(settings.get("oracle")) or ("base" in settings and is_oracle(settings["base"]))


def _law(run: Run) -> str:
    return str(run.settings["availability"]["name"])


def _marked(label: str, runs: Sequence[Run], laws: set[str]) -> str:
    """The label with a mark where a method knows what no agnostic one can: the law, or that everyone is there."""
    told = any(is_oracle(run.settings["algorithm"]) for run in runs)
    control = laws != {EVERYONE} and any(_law(run) == EVERYONE for run in runs)
    return f"{label} {ORACLE}" if (told or control) and ORACLE not in label else label


def _labels(groups: list[list[Run]]) -> list[str]:
    labels: list[str] = []
    for members in groups:
        namesakes = [other[0] for other in groups if _name(other) == _name(members)]
        skipped = ("seed", *REDRAWN)
        keys = [key for key in differing(namesakes) if key not in skipped and not key.endswith(_DERIVED)]
        label = _label(_name(members), keys, flatten(members[0].settings))
        copies = sum(earlier == label or earlier.startswith(f"{label} #") for earlier in labels)
        labels.append(f"{label} #{copies + 1}" if copies else label)
    return labels


def _label(name: str, keys: list[str], settings: dict[str, Any]) -> str:
    said = []
    for key in keys:
        if key in settings:
            value = settings[key]
            text = f"{value:.4g}" if isinstance(value, float) else str(value)
            # A long list says nothing in a label: the tables of settings have it in full.
            if len(text) <= _LONGEST_VALUE:
                said.append(f"{key.removeprefix('algorithm.')}={text}")
    return f"{name} ({', '.join(said)})" if said else name

"""The settings of several runs: what they have in common, and in what they differ."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedhedge.simulation import Run

# What changes from seed to seed when a client's rows are drawn anew for each, besides the seed itself.
REDRAWN = ("data.digest", "data.splits.seed", "data.scaling.shift", "data.scaling.scale")


def flatten(settings: dict[str, Any]) -> dict[str, Any]:
    """Nested settings as one level with dotted keys (`algorithm.alpha`), in JSON terms: lists, no tuples."""
    flat: dict[str, Any] = {}
    for key, value in json.loads(json.dumps(settings)).items():
        if isinstance(value, dict):
            flat |= {f"{key}.{inner}": entry for inner, entry in flatten(value).items()}
        else:
            flat[key] = value
    return flat


def common(runs: Sequence[Run]) -> dict[str, Any]:
    """Dotted settings that all runs have with the same value."""
    first, *rest = [flatten(run.settings) for run in runs]
    return {key: value for key, value in first.items() if all(key in other and other[key] == value for other in rest)}


def differing(runs: Sequence[Run]) -> list[str]:
    """Dotted keys of the settings in which the runs differ, in the order of their first appearance."""
    keys = dict.fromkeys(key for run in runs for key in flatten(run.settings))
    shared = common(runs)
    return [key for key in keys if key not in shared]

"""The files that a finished run leaves in its folder."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedhedge import files
from fedhedge.checks import InvalidInput
from fedhedge.simulation import CheckpointMismatch, Run, checkpoint
from fedhedge.simulation.driver import HISTORY_NAME

SUMMARY = "summary.json"
RUN = "run.npz"
REPORT = "report.html"


def write(run: Run, settings: Mapping[str, Any], folder: Path, title: str) -> None:
    """Write a run to `folder`; the summary, which says that the run is finished, comes last."""
    from fedhedge import report

    parameters = checkpoint.flatten(run.params, "")
    files.write_arrays(folder / "params.npz", {name.removeprefix("/"): array for name, array in parameters.items()})
    files.write_table(folder / HISTORY_NAME, run.history)
    files.write_table(folder / "participation.parquet", run.participation)
    run.save(folder / RUN)
    for split in splits(run)[-1:]:
        shown: dict[str, Any] = {"rare": seldom_there(run), "split": split}
        report.write_plots([run], folder / "plots", **shown)
        report.write_report([run], folder / REPORT, title=title, **shown)
    summary = run.summary()
    # JSON has no word for a number that is not finite.
    metrics = {name: value if math.isfinite(value) else None for name, value in summary["metrics"].items()}
    files.write_json(folder / SUMMARY, summary | {"metrics": metrics, "configuration": dict(settings)})


def finished(folder: Path, settings: Mapping[str, Any]) -> bool:
    """Whether the folder holds a finished run of these settings.

    Raises CheckpointMismatch, which names each key that differs, when it holds one of others.
    """
    path = folder / SUMMARY
    if not path.exists():
        return False
    try:
        there = dict(json.loads(path.read_text(encoding="utf-8"))["configuration"])
    except (ValueError, KeyError, TypeError):
        raise InvalidInput("--out", str(folder), f"a folder without a {SUMMARY} of something else") from None
    lines = checkpoint.differences(there, json.loads(json.dumps(settings)))
    if lines:
        raise CheckpointMismatch(
            f"{folder} holds a finished run of another configuration: {'; '.join(lines)} (give another folder by --out)"
        )
    return True


def splits(run: Run) -> list[str]:
    """The splits that the run was evaluated on, which hold a row at least."""
    measured = run.history.loc[run.history["client"] >= 0, "split"]
    return [split for split in run.settings["evaluate_on"] if split in set(measured)]


def seldom_there(run: Run) -> list[int]:
    """Clients whose weight in what the server averages is below half of an equal share."""
    weights = run.weights
    return [client for client, weight in enumerate(weights) if weight < 0.5 / len(weights)]


def load(path: Path) -> Run:
    """The run in a folder that `fedhedge run` wrote, or in a file of `Run.save`.

    Raises InvalidInput when there is none, CheckpointMismatch when it cannot be read.
    """
    file = path / RUN if path.is_dir() else path
    if not file.is_file():
        raise InvalidInput("RUN", str(path), "the folder of a finished run or of a finished reproduce, or a run.npz")
    return Run.load(file)

"""One self-contained HTML page about a set of runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

import fedhedge
from fedhedge import files
from fedhedge.evaluation.columns import columns
from fedhedge.report import tables
from fedhedge.report.figures import plots
from fedhedge.report.notes import notes
from fedhedge.report.privacy import DELTA, privacy
from fedhedge.report.section import environment
from fedhedge.report.settings_text import short, toml
from fedhedge.report.study import Study

if TYPE_CHECKING:
    from fedhedge.simulation import Run

_HEADLINES = {"mean": "best client mean", "worst_client": "best worst client", "rare": "best mean of rare clients"}


def write_report(
    runs: Sequence[Run] | Mapping[str, Sequence[Run]],
    path: str | Path,
    *,
    title: str = "Federated runs compared",
    rare: Sequence[int] = (),
    target: float | None = None,
    split: str = "test",
    last: int = 1,
) -> Path:
    """Write a page that needs no network and no script: summary, figures, tables, warnings, how to reproduce.

    runs: any runs (grouped by `evaluation.group`), or label -> runs. rare: client numbers to look at together.
    target: a value of the metric to count rounds to. split: which rows metrics are of. last: a final number is the
    mean over this many of the last evaluations. The same runs give the same page, which is written atomically.
    Returns the path. Raises InvalidInput as `evaluation.compare` does, before anything is written.
    """
    study = Study.of(runs, rare, target, split, last)
    path = Path(path)
    files.write_text(path, render(study, title))
    return path


def render(study: Study, title: str) -> str:
    """The page as text."""
    figures = {plot.name: (plot, Markup(plot.inline())) for plot in plots(study)}
    return (
        environment()
        .get_template("page.html")
        .render(
            title=title,
            study=study,
            lead=_lead(study),
            headlines=_headlines(study),
            notes=notes(study),
            tables=tables,
            figures=figures,
            private=privacy(study),
            delta=DELTA,
            draws=study.draws(),
            reproduce={
                label: toml(_merged([json.loads(json.dumps(run.settings)) for run in members]))
                for label, members in study.groups.items()
            },
            version=fedhedge.__version__,
        )
    )


def _lead(study: Study) -> str:
    """What was run, in a sentence or two."""
    run = study.runs[0]
    settings = run.settings
    seeds = sorted({run.settings["seed"] for run in study.runs})
    clients = len(run.weights)
    methods = ", ".join(study.groups)
    people = sum(run.counts["uploads"] for run in study.runs) / sum(run.counts["rounds"] for run in study.runs)
    return (
        f"{methods} on {settings['data'].get('source', 'data')} over {clients} client{'s' if clients > 1 else ''}, "
        f"model {settings['model']['name']}, {run.counts['rounds']} rounds, seed{'s' if len(seeds) > 1 else ''} "
        f"{short(seeds)}. On average {people:.3g} clients got through in a round ({settings['availability']['name']})."
    )


def _headlines(study: Study) -> list[tuple[str, str, str]]:
    """(what, value, whose) of the best methods in the summary, where methods differ."""
    labels = list(study.groups)
    unit = " %" if study.metric == "accuracy" else ""
    return [
        (_HEADLINES[column.key], column.cells[column.best[0]] + unit, " and ".join(labels[i] for i in column.best))
        for column in columns(study.table)
        if column.key in _HEADLINES and column.best
    ]


def _merged(values: Sequence[Any]) -> Any:
    """One value for several runs: itself where they agree, table by table; else the list of their values."""
    first = values[0]
    if all(value == first for value in values):
        return first
    if all(isinstance(value, dict) for value in values):
        keys = dict.fromkeys(key for value in values for key in value)
        return {key: _merged([value.get(key) for value in values]) for key in keys}
    return list(values)

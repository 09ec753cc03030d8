"""All figures of a study, and their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fedhedge.report import style
from fedhedge.report.client_bars import client_bars
from fedhedge.report.curves import metric_curves, tail_curves
from fedhedge.report.participation_plot import participation_plots
from fedhedge.report.plot import Plot
from fedhedge.report.study import Study

if TYPE_CHECKING:
    from fedhedge.simulation import Run


def write_plots(
    runs: Sequence[Run] | Mapping[str, Sequence[Run]],
    folder: str | Path,
    *,
    rare: Sequence[int] = (),
    split: str = "test",
    last: int = 1,
) -> list[Path]:
    """Write every figure to `folder` as NAME.png and NAME.svg, each atomically; returns the paths.

    Arguments as of `write_report`. Raises InvalidInput as `evaluation.compare` does, before anything is written.
    """
    written: list[Path] = []
    for plot in plots(Study.of(runs, rare, None, split, last)):
        written += plot.write(Path(folder))
    return written


def plots(study: Study) -> list[Plot]:
    """The figures in the order of the page: curves, clients, participation, and FedeRage's tail where there is one."""
    with style.settings():
        return [*metric_curves(study), client_bars(study), *participation_plots(study), *tail_curves(study)]

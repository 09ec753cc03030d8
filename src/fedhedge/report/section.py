"""A table or figure of a paper as a section of a page, beside the files that it is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import jinja2
import pandas as pd
from markupsafe import Markup

import fedhedge
from fedhedge import files
from fedhedge.checks import InvalidInput
from fedhedge.report.plot import Plot
from fedhedge.report.tables import Table

SECTION_NAME, PAGE_NAME = "section.html", "report.html"


@dataclass(frozen=True)
class Section:
    """What an experiment leaves.

    name: of the experiment, also of the section's anchor. text: paragraphs on what was done and how to read it.
    tables: heading -> table as shown. plots: figures in order. data: file name without ending -> numbers behind them.
    command: what makes it again. tables_first: whether the tables are what is looked for, not the figures.
    """

    name: str
    title: str
    text: Sequence[str]
    command: str
    tables: Mapping[str, Table] = field(default_factory=dict)
    plots: Sequence[Plot] = ()
    data: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    tables_first: bool = False

    @property
    def in_part(self) -> bool:
        """Whether it is the small form of an experiment."""
        return self.command.endswith("--fast")


def environment() -> jinja2.Environment:
    """The templates of this room."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("fedhedge.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def write_section(out: Path, section: Section) -> None:
    """Write the data as .csv, the figures as .png and .svg, section.html, and report.html with that section alone.

    Each file is replaced whole; the page comes last.
    """
    for name, frame in section.data.items():
        files.write_text(out / f"{name}.csv", frame.to_csv(index=False))
    for plot in section.plots:
        plot.write(out)
    figures = [(plot, Markup(plot.inline(f"{section.name}-{plot.name}"))) for plot in section.plots]
    text = environment().get_template("section.html").render(section=section, figures=figures)
    files.write_text(out / SECTION_NAME, text)
    write_sections([out], out / PAGE_NAME, title=f"fedhedge reproduce {section.name}")


def write_sections(folders: Sequence[Path], path: Path, *, title: str = "Tables and figures") -> Path:
    """Write one self-contained page of the sections in these folders, in this order; returns the path.

    Raises InvalidInput for a folder without a section, before anything is written.
    """
    found = []
    for folder in folders:
        place = folder / SECTION_NAME
        if not place.is_file():
            raise InvalidInput("folder", str(folder), f"a folder that fedhedge reproduce wrote, with {SECTION_NAME}")
        found.append(Markup(place.read_text(encoding="utf-8")))
    page = environment().get_template("sections.html")
    files.write_text(path, page.render(title=title, sections=found, version=fedhedge.__version__))
    return path


def as_lines(table: Table) -> str:
    """The table as text, columns aligned, cells of several lines joined."""
    rows = [[" ".join(cell.split("\n")) for cell in row] for row in (table.head, *table.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    aside = table.left
    for row in rows:
        placed = [
            cell.ljust(width) if left else cell.rjust(width)
            for cell, width, left in zip(row, widths, aside, strict=True)
        ]
        lines.append("  ".join(placed).rstrip())
    return "\n".join(lines)


def in_terminal(section: Section) -> str:
    """Title and tables of a section as text."""
    parts = [section.title]
    parts += [f"{heading}\n{as_lines(table)}" for heading, table in section.tables.items()]
    return "\n\n".join(parts)

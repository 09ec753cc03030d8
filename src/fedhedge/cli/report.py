"""`fedhedge report`: one HTML page about runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from fedhedge.cli.compare import add_runs

DESCRIPTION = """\
Write one self-contained HTML page with tables and plots of finished runs, or of what `fedhedge reproduce` left: then
as they were made, without --split, --target and --rare.
"""


def add(commands: Any, style: dict[str, Any]) -> None:
    parser = commands.add_parser("report", help="write an HTML page about runs", description=DESCRIPTION, **style)
    add_runs(parser)
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="report.html", help="the page to write")
    parser.add_argument("--title", help="title of the page")
    parser.set_defaults(execute=run)


def run(given: argparse.Namespace) -> int:
    from fedhedge import report
    from fedhedge.checks import InvalidInput
    from fedhedge.cli import results
    from fedhedge.report.section import SECTION_NAME, write_sections

    if given.out.is_dir() or not given.out.name or given.out.parent.is_file():
        raise InvalidInput("--out", str(given.out), "a file to write, such as report.html, in a folder or a new one")
    places = [path.resolve() for path in given.runs]
    for number, path in enumerate(given.runs):
        if places[number] in places[:number]:
            raise InvalidInput("RUN", str(path), "each folder once", "it is named twice")
    sections = [(path / SECTION_NAME).is_file() for path in given.runs]
    if any(sections):
        if not all(sections):
            other = given.runs[sections.index(False)]
            allowed = "folders of fedhedge reproduce alone, or runs alone: a page is about the one or the other"
            raise InvalidInput("RUN", str(other), allowed, "it has no finished section")
        for name, value, usual in (
            ("--rare", list(given.rare), []),
            ("--target", given.target, None),
            ("--split", given.split, "test"),
        ):
            if value != usual:
                allowed = "nothing for folders of fedhedge reproduce, whose tables are shown as they were made"
                raise InvalidInput(name, value, allowed, "it is for pages about runs")
        write_sections(given.runs, given.out, **({} if given.title is None else {"title": given.title}))
        print(given.out)
        return 0
    runs = [results.load(path) for path in given.runs]
    report.write_report(
        runs, given.out, title=given.title or "fedhedge", rare=given.rare, target=given.target, split=given.split
    )
    print(given.out)
    return 0

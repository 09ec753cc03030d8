"""`fedhedge report`: one HTML page about runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

DESCRIPTION = "Write one self-contained HTML page with tables and plots of finished runs."


def add(commands: Any, style: dict[str, Any]) -> None:
    parser = commands.add_parser("report", help="write an HTML page about runs", description=DESCRIPTION, **style)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folder of a finished run, or its run.npz")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="report.html", help="the page to write")
    parser.add_argument("--title", default="fedhedge", help="title of the page (default: %(default)s)")
    parser.set_defaults(execute=run)


def run(given: argparse.Namespace) -> int:
    from fedhedge import report
    from fedhedge.cli import results

    report.write_report([results.load(path) for path in given.runs], given.out, title=given.title)
    print(given.out)
    return 0

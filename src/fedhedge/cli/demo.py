"""`fedhedge demo`: the whole path on data that come with the package."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

DESCRIPTION = """\
Train FedAvg, FedProx, SCAFFOLD and FedeRage on scikit-learn's digits over 30 clients, three of them rare and seldom
there, and write a table, plots and an HTML page. Needs no data files and no network.
"""


def add(commands: Any, style: dict[str, Any]) -> None:
    parser = commands.add_parser("demo", help="four methods on embedded data", description=DESCRIPTION, **style)
    parser.add_argument("--out", type=Path, default=Path("runs/demo"), metavar="DIR", help="default: %(default)s")
    parser.add_argument("--quiet", action="store_true", help="print nothing but warnings and errors")
    parser.set_defaults(execute=run)


def run(given: argparse.Namespace) -> int:
    from fedhedge.cli.compilation import keep_compiled
    from fedhedge.experiments import demo

    keep_compiled()
    try:
        demo.main(given.out, quiet=given.quiet)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"the same command goes on with what is in {given.out}") from None
    return 0

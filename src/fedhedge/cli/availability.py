"""`fedhedge availability`: what a law of availability means for each client."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from fedhedge.cli.run import add_overrides

DESCRIPTION = """\
Print, for each client of a configuration, the probability to get through in a round and the weight that averaging
what arrives gives it (eq. 8 of the FedeRage paper), with their standard errors where they are estimates.
"""


def add(commands: Any, style: dict[str, Any]) -> None:
    parser = commands.add_parser("availability", help="what a law of availability means for each client", **style)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    describing = actions.add_parser("describe", help="print a table of the law", description=DESCRIPTION, **style)
    describing.add_argument("config", type=Path, metavar="CONFIG.toml")
    add_overrides(describing)
    describing.set_defaults(execute=describe)


def describe(given: argparse.Namespace) -> int:
    from fedhedge.config import load_config

    law = load_config(given.config, given.overrides).law
    table = law.describe()
    print(table.to_string(index=False))
    arrive = table["inclusion_probability"].sum()
    print(f"clients a round: {arrive:.6g} on average; rounds without any: {law.empty_probability():.6g}")
    return 0

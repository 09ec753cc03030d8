"""`fedhedge availability`: what a law of availability means for each client."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from fedhedge.checks import InvalidInput
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
    describing.add_argument("--plot", type=Path, metavar="FILE", help="draw the weights, as .png or .svg")
    describing.set_defaults(execute=describe)


def describe(given: argparse.Namespace) -> int:
    from fedhedge.config import load_config

    if given.plot is not None and given.plot.suffix not in (".png", ".svg"):
        raise InvalidInput("--plot", str(given.plot), "a file name that ends in .png or .svg")
    config = load_config(given.config, given.overrides)
    law, faults = config.law, config.options.faults
    table = law.describe()
    print(table.to_string(index=False))
    arrive = table["inclusion_probability"].sum()
    print(f"clients a round: {arrive:.6g} on average; rounds without any: {law.empty_probability():.6g}")
    if faults is not None and faults.lost:
        print(f"on top of that, each upload is lost with probability {faults.lost:g} ([faults])")
    if given.plot is not None:
        from fedhedge import files
        from fedhedge.report.participation_plot import law_plot

        drawn = law_plot(law)
        files.write_bytes(given.plot, drawn.png() if given.plot.suffix == ".png" else drawn.svg().encode())
        print(f"plot: {given.plot}")
    return 0

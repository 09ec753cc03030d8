"""`fedhedge privacy`: what a privacy budget means before anything is trained."""

from __future__ import annotations

import argparse
from typing import Any

DESCRIPTION = """\
Print the noise that a budget asks of each round at a site, how it compares with the signal, and, where training would
be mostly noise, which change of one setting would help.
"""


def add(commands: Any, style: dict[str, Any]) -> None:
    parser = commands.add_parser("privacy", help="what a privacy budget means", **style)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    planning = actions.add_parser("plan", help="noise and signal under a budget", description=DESCRIPTION, **style)
    planning.add_argument("--epsilon", type=float, required=True, help="budget of the whole run")
    planning.add_argument("--delta", type=float, required=True, help="below 1 / samples")
    planning.add_argument("--rounds", type=int, required=True, help="rounds of training")
    planning.add_argument("--samples", type=int, required=True, help="rows of a site")
    planning.add_argument("--features", type=int, default=10, help="with the constant one (default: %(default)s)")
    planning.add_argument("--classes", type=int, default=2, help="default: %(default)s")
    planning.add_argument("--clients", type=int, default=1, help="equal sites that are averaged (default: %(default)s)")
    planning.add_argument(
        "--lambda-share", type=float, default=0.0, help="of mu^2 for lambda: 0.05 for dp-dro (default: %(default)s)"
    )
    planning.set_defaults(execute=plan)


def plan(given: argparse.Namespace) -> int:
    from fedhedge import privacy

    names = ("epsilon", "delta", "rounds", "samples", "features", "classes", "clients", "lambda_share")
    print(privacy.plan(**{name: getattr(given, name) for name in names}))
    return 0

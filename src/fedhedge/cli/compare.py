"""`fedhedge compare`: runs side by side."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

DESCRIPTION = """\
Put finished runs side by side: one line for each method, means over its seeds.
"""
EXAMPLE = """\
several seeds of a configuration file, each in a folder of its own, where it can be resumed:
  for seed in 0 1 2; do fedhedge run a.toml --set seed=$seed; done
  fedhedge compare runs/a-*
"""


def add(commands: Any, style: dict[str, Any]) -> None:
    parser = commands.add_parser(
        "compare", help="put runs side by side", description=DESCRIPTION, epilog=EXAMPLE, **style
    )
    add_runs(parser)
    parser.set_defaults(execute=run)


def add_runs(parser: argparse.ArgumentParser) -> None:
    """The arguments of every command that looks at finished runs."""
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folder of a finished run, or its run.npz")
    parser.add_argument("--split", default="test", help="rows to look at: train, validation or test (the default)")
    parser.add_argument("--target", type=float, metavar="VALUE", help="also count the rounds to this accuracy")
    parser.add_argument(
        "--rare", type=_numbers, default=(), metavar="I,J,...", help="also average over these clients, such as 27,28,29"
    )


def run(given: argparse.Namespace) -> int:
    from fedhedge import evaluation
    from fedhedge.cli import results
    from fedhedge.evaluation.settings import REDRAWN

    runs = [results.load(path) for path in given.runs]
    other = [key for key in evaluation.differing(runs) if not key.startswith(("algorithm.", "seed", *REDRAWN))]
    if other:
        print(f"fedhedge: warning: the runs differ in more than the method: {', '.join(other)}", file=sys.stderr)
    print(evaluation.as_text(evaluation.compare(runs, given.rare, given.target, split=given.split)))
    return 0


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"received {text!r}; allowed: client numbers, such as 27,28,29") from None

"""The command line: one file per command, imported at once; what a command needs is imported when it runs."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

import fedhedge
from fedhedge.checks import InvalidInput
from fedhedge.cli import availability, compare, data, demo, deploy, fit, predict, privacy, report, reproduce, run

COMMANDS = (run, demo, fit, predict, privacy, deploy, compare, report, reproduce, data, availability)
DESCRIPTION = """\
Federated learning over clients that hold different data and come and go.

  fedhedge demo                            four methods on embedded data, in a few minutes
  fedhedge run examples/digits-quick.toml  train by a configuration file
  fedhedge compare runs/a-0 runs/b-0       put runs side by side
  fedhedge fit sites/ --label fault -o m/  a robust, private classifier from one file per site
  fedhedge COMMAND --help                  what a command does, with its options
"""
STATUS = "Exit status: 0 success, 1 a run or a check failed, 2 bad arguments or configuration, 130 interrupted."
FAILED, REFUSED, INTERRUPTED = 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; errors are one message on standard error."""
    given = _parser().parse_args(arguments)
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: _say(f"warning: {message}")
        try:
            status: int = given.execute(given)
            sys.stdout.flush()
        except BrokenPipeError:
            # Whoever read the output has gone; the interpreter must not fail once more when it flushes at the end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return FAILED
        except KeyboardInterrupt as interrupt:
            _say("; ".join(["interrupted", *map(str, interrupt.args)]))
            return INTERRUPTED
        except Exception as error:
            if getattr(given, "debug", False):
                traceback.print_exc()
            _say(f"error: {_describe(error)}")
            return REFUSED if _refused(error) else FAILED
    return status


def _parser() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--debug", action="store_true", default=argparse.SUPPRESS, help="show the traceback of an error"
    )
    style: Any = {"formatter_class": argparse.RawDescriptionHelpFormatter, "parents": [shared]}
    parser = argparse.ArgumentParser("fedhedge", description=DESCRIPTION, epilog=STATUS, **style)
    parser.add_argument("--version", action="version", version=f"fedhedge {fedhedge.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add(commands, style)
    return parser


def _describe(error: Exception) -> str:
    # Errors of this package, and the system's about files, are written to be read; others are a defect.
    if isinstance(error, OSError) or type(error).__module__.startswith("fedhedge."):
        return str(error)
    return f"unexpected {type(error).__name__}: {error} (--debug shows where)"


def _refused(error: Exception) -> bool:
    if isinstance(error, InvalidInput) or not isinstance(error, ValueError):
        return isinstance(error, InvalidInput)
    from fedhedge.simulation import CheckpointMismatch

    return isinstance(error, CheckpointMismatch)


def _say(text: str) -> None:
    print(f"fedhedge: {text}", file=sys.stderr)

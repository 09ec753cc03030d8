"""`fedhedge reproduce`: the papers' tables and figures, by name."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

MARKER = "experiment.json"
DESCRIPTION = """\
Compute a table or figure of the papers from nothing: data, training, choice of hyper-parameters, tables.

The folder gets the numbers as CSV, figures as PNG and SVG, a page (report.html), and each finished part as it is done:
the same command on the same folder goes on where it was stopped. `fedhedge report DIR DIR ... -o papers.html` puts
several folders on one page.
"""


def add(commands: Any, style: dict[str, Any]) -> None:
    parser = commands.add_parser("reproduce", help="the papers' tables and figures", description=DESCRIPTION, **style)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("name", nargs="?", metavar="NAME", help="what to compute; --list names all")
    what.add_argument("--list", action="store_true", help="print all names with the time they take, and do nothing")
    parser.add_argument("--fast", action="store_true", help="a small part of it, to see that it works")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the results (default: runs/NAME[-fast])")
    parser.add_argument("--quiet", action="store_true", help="print nothing but warnings and errors")
    parser.set_defaults(execute=run)


def run(given: argparse.Namespace) -> int:
    from fedhedge.checks import InvalidInput
    from fedhedge.experiments.registry import EXPERIMENTS, whole

    if given.list:
        print(_listed())
        return 0
    name = whole(given.name)
    chosen = EXPERIMENTS[name]
    out: Path = given.out or Path("runs") / (name + ("-fast" if given.fast else ""))
    new = not out.exists()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput("--out", str(out), "a folder, or a place for one", error.strerror or "") from None
    _claim(out, name, given.fast)
    if not given.quiet:
        minutes = chosen.fast_minutes if given.fast else chosen.minutes
        print(f"{name}: about {_time(minutes)} on two cores; results in {out}", flush=True)
    from fedhedge.cli.compilation import keep_compiled

    keep_compiled()
    try:
        chosen.load()(out, fast=given.fast, quiet=given.quiet)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"the same command goes on with what is in {out}") from None
    except Exception:
        if new:
            _forget(out)
        raise
    return 0


def _forget(out: Path) -> None:
    """Remove a folder in which nothing was finished, such as one made before the data were found missing."""
    if [path.name for path in out.iterdir()] == [MARKER]:
        (out / MARKER).unlink()
        out.rmdir()


def _claim(out: Path, name: str, fast: bool) -> None:
    """Make the folder that of this experiment; InvalidInput where it holds something else already."""
    from fedhedge import files
    from fedhedge.checks import InvalidInput

    about, marker = {"experiment": name, "fast": fast}, out / MARKER
    if marker.is_file():
        try:
            there = json.loads(marker.read_text(encoding="utf-8"))
        except ValueError:
            there = None
    else:
        there = about if not any(out.iterdir()) else None
    if there != about:
        allowed = f"an empty folder, or the one where {name}{' --fast' if fast else ''} was begun"
        raise InvalidInput("--out", str(out), allowed, _held(there, name))
    files.write_json(marker, about)


def _held(there: object, name: str) -> str:
    """What a folder holds that is not for this experiment, and what sets it apart."""
    match there:
        case {"experiment": other, "fast": bool(fast)} if other == name:
            return f"{name} was begun there {'with' if fast else 'without'} --fast, and this is the other form"
        case {"experiment": str(other), "fast": bool(fast)}:
            return f"another experiment was begun there, {other}{' --fast' if fast else ''}"
        case _:
            return "it holds something else"


def _listed() -> str:
    """All names, with what they make and how long it takes."""
    from fedhedge.experiments.registry import EXPERIMENTS, PARTS

    lines = []
    for name, entry in EXPERIMENTS.items():
        lines += [f"{name}  (about {_time(entry.minutes)}, --fast {_time(entry.fast_minutes)})", f"    {entry.title}"]
    return "\n".join([*lines, *[f"{part}  (with {name})" for part, name in PARTS.items()]])


def _time(minutes: float) -> str:
    return f"{minutes / 60:.0f} hours" if minutes >= 120 else f"{minutes:g} min"

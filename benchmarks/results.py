"""What a benchmark found: printed as it comes, and written as JSON where `--json` says."""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from fedhedge import files


@dataclass(frozen=True)
class Line:
    """One number with its range over the turns. at_least, at_most: the target, where there is one."""

    what: str
    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    at_least: float | None = None
    at_most: float | None = None

    @property
    def target(self) -> str:
        """The target in words, and whether it is met."""
        if self.at_least is None and self.at_most is None:
            return ""
        met = self.value >= self.at_least if self.at_least is not None else self.value <= self.at_most
        sign, bound = ("≥", self.at_least) if self.at_least is not None else ("≤", self.at_most)
        return f"{sign} {bound:g}: {'met' if met else 'missed'}"

    def cells(self) -> tuple[str, str, str, str]:
        spread = "" if self.low is None or self.high is None else f"{digits(self.low)} to {digits(self.high)}"
        return self.what, f"{digits(self.value)} {self.unit}".strip(), spread, self.target


def digits(value: float) -> str:
    """Three significant digits without an exponent."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    places = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{places}f}"


@dataclass
class Results:
    """The lines and remarks of one benchmark, under the command that gives them again.

    load: processes that wanted a core in the minute before.
    """

    title: str
    command: str
    load: float
    path: Path | None = None
    lines: list[Line] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, title: str, given: argparse.Namespace) -> Self:
        command = ["benchmarks/" + Path(sys.argv[0]).name, *_without_path(sys.argv[1:])]
        return cls(title, " ".join(command), os.getloadavg()[0], given.json)

    def add(self, what: str, values: float | Sequence[float], unit: str, **target: float) -> float:
        """Take the median of some values, with their range; print and return it."""
        found = [values] if isinstance(values, int | float) else list(values)
        middle = float(statistics.median(found))
        ends = (float(min(found)), float(max(found))) if len(found) > 1 else (None, None)
        line = Line(what, middle, unit, *ends, **target)
        self.lines.append(line)
        name, value, spread, wanted = line.cells()
        print(f"{name:58} {value:>18}  {spread:22} {wanted}", flush=True)
        return middle

    def remark(self, text: str) -> None:
        self.remarks.append(text)
        print(text, flush=True)

    def write(self) -> None:
        """Write the JSON file, atomically, where one was asked for."""
        if self.path is not None:
            content: dict[str, Any] = asdict(self)
            del content["path"]
            files.write_json(self.path, content)


def read(path: Path) -> Results:
    """What `Results.write` wrote."""
    content = json.loads(path.read_text())
    return Results(**content | {"lines": [Line(**line) for line in content["lines"]]})


def options(description: str | None) -> argparse.ArgumentParser:
    """A parser with what all benchmarks understand."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a smoke test: least sizes, one turn")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there")
    return parser


def _without_path(arguments: Sequence[str]) -> list[str]:
    """The arguments without those that name places on this machine."""
    kept, skip = [], False
    for argument in arguments:
        place = argument in ("--json", "--environments", "--plots")
        if not (skip or place):
            kept.append(argument)
        skip = place
    return kept

"""Finished parts of an experiment as JSON files: computed once, kept, and refused where they are of another form."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from fedhedge import files
from fedhedge.simulation.checkpoint import CheckpointMismatch, differences

Cell = dict[str, Any]
FOLDER = "cells"


@dataclass(frozen=True)
class Part:
    """A part of an experiment that is computed in one go.

    name: of its file. described: all that it depends on. make: computes it. shapes: the arrays of finite numbers that
    it holds, by name.
    """

    name: str
    described: Mapping[str, Any]
    make: Callable[[], Mapping[str, Any]]
    shapes: Mapping[str, tuple[int, ...]]

    def intact(self, cell: Cell) -> bool:
        """Whether a cell holds finite numbers in these shapes."""
        return all(
            np.shape(cell[name]) == shape and bool(np.isfinite(cell[name]).all()) for name, shape in self.shapes.items()
        )


def finished(out: Path, parts: Sequence[Part], *, quiet: bool) -> dict[str, Cell]:
    """All parts by name: those in `out` as they are there, the others computed and written as soon as they are done.

    Raises CheckpointMismatch when a file is of another form, or damaged.
    """
    cells = {}
    with tqdm(parts, unit="part", disable=True if quiet else None) as bar:
        for part in bar:
            bar.set_description(part.name)
            path = out / FOLDER / f"{part.name}.json"
            described = files.plain(part.described)
            cell = kept(path, described, part.intact)
            if cell is None:
                cell = {"described": described} | files.plain(part.make())
                files.write_json(path, cell)
            cells[part.name] = cell
    return cells


def kept(path: Path, described: Mapping[str, Any], intact: Callable[[Cell], bool]) -> Cell | None:
    """The cell of this file, None where there is none.

    Raises CheckpointMismatch that names what differs when it is described otherwise, and when it is not `intact`.
    """
    if not path.exists():
        return None
    try:
        cell: Cell = json.loads(path.read_text(encoding="utf-8"))
        lines = differences(cell["described"], described)
        if lines:
            raise CheckpointMismatch(f"{path} is of another table: {'; '.join(lines)} (take another folder by --out)")
        whole = intact(cell)
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, CheckpointMismatch):
            raise
        whole = False
    if not whole:
        raise CheckpointMismatch(f"{path} is damaged, no finished part of a table (remove it to compute it again)")
    return cell


def command(name: str, fast: bool) -> str:
    """What makes an experiment again."""
    return f"fedhedge reproduce {name}{' --fast' if fast else ''}"

"""Replay of who got through, as recorded."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fedhedge import checks
from fedhedge.availability.base import check_rounds
from fedhedge.availability.table import Table
from fedhedge.checks import InvalidInput

_COLUMNS = ["round", "client"]
_MOST_CELLS = 2**26


@dataclass(frozen=True, eq=False)
class Trace(Table):
    """A recorded trace, replayed from its first round and repeated after its last.

    `source` is an array of 0 and 1 [rounds, N], or a .csv or .parquet file with the columns round and client: one row
    per client that got through, numbered from 0; a round without rows, or whose row has an empty client, is empty
    (as `Law.record` writes it). `clients` is N; None takes it from the array, or the highest number in the file plus
    one. The results are averages over the rounds of the trace. Raises InvalidInput that names file and column.
    """

    source: ArrayLike | str | Path
    clients: int | None = None
    present: NDArray[np.bool_] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        clients = None if self.clients is None else checks.integer("clients", self.clients, low=1)
        present = _read(Path(self.source), clients) if isinstance(self.source, str | Path) else _array(self.source)
        if clients not in (None, present.shape[1]):
            raise InvalidInput("clients", clients, str(present.shape[1]), "as many as the trace has columns")
        if not present.any():
            raise InvalidInput("source", self.source, "a trace in which somebody gets through")
        present.flags.writeable = False
        object.__setattr__(self, "clients", present.shape[1])
        object.__setattr__(self, "present", present)

    def sample(self, rng: np.random.Generator, round: int) -> NDArray[np.bool_]:
        return np.array(self.present[round % len(self.present)])

    def schedule(self, seed: int, start: int, stop: int) -> NDArray[np.bool_]:
        check_rounds(seed, start, stop)
        return self.present[np.arange(start, stop) % len(self.present)]

    def table(self) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        return self._table

    @cached_property
    def _table(self) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        subsets, times = np.unique(self.present, axis=0, return_counts=True)
        return subsets, times / len(self.present)

    def settings(self) -> dict[str, Any]:
        """Name, shape and SHA-256 of the trace, wherever it came from."""
        digest = hashlib.sha256(np.packbits(self.present).tobytes()).hexdigest()
        rounds, clients = self.present.shape
        return {"name": type(self).__name__, "rounds": rounds, "clients": clients, "sha256": digest}


def _array(source: Any) -> NDArray[np.bool_]:
    given = np.asarray(source)
    if given.ndim != 2 or given.size == 0 or not np.isin(given, (0, 1)).all():
        raise InvalidInput("source", source, "a file, or an array [rounds, clients] of 0 and 1")
    return given.astype(np.bool_)


def _read(path: Path, clients: int | None) -> NDArray[np.bool_]:
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet") or not path.is_file():
        raise InvalidInput("source", str(path), "an existing .csv or .parquet file")
    try:
        frame = pd.read_csv(path) if suffix == ".csv" else pd.read_parquet(path)
    except (ValueError, OSError) as error:
        raise InvalidInput("source", str(path), "a readable .csv or .parquet file", str(error)) from error
    missing = [name for name in _COLUMNS if name not in frame.columns]
    if missing:
        columns = [str(name) for name in frame.columns]
        raise InvalidInput(
            f"{path.name}: columns", columns, "round and client among the columns", f"missing: {missing[0]}"
        )
    rounds = _whole_numbers(path, "round", frame["round"])
    somebody = frame["client"].notna().to_numpy()
    members = _whole_numbers(path, "client", frame.loc[somebody, "client"])
    if not len(members):
        raise InvalidInput(f"{path.name}: client", "no client", "a trace in which somebody gets through")
    count = int(members.max()) + 1 if clients is None else clients
    if members.max() >= count:
        allowed = f"a whole number from 0 to {count - 1}"
        raise InvalidInput(f"{path.name}: client", int(members.max()), allowed, f"clients={count}")
    length = int(rounds.max()) + 1
    if length * count > _MOST_CELLS:
        raise InvalidInput(
            f"{path.name}: round", length - 1, "rounds numbered from 0", f"{length} x {count} is too large a trace"
        )
    present = np.zeros((length, count), dtype=np.bool_)
    present[rounds[somebody], members] = True
    return present


def _whole_numbers(path: Path, name: str, column: pd.Series) -> NDArray[np.int64]:
    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0) & (values == np.floor(values))))
    if len(wrong):
        row = column.index[wrong[0]]
        received = column.tolist()[wrong[0]]
        raise InvalidInput(f"{path.name}: {name}", received, "whole numbers, 0 or more", f"row {row} of the data")
    return values.astype(np.int64)

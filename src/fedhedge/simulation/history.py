"""The tidy tables of a run, kept as columns while it goes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

OVER_ALL = -1
COLUMNS = {"round": np.int64, "client": np.int64, "split": object, "metric": object, "value": np.float64}


class History:
    """Rows (round, client, split, metric, value) in the order they were made; client -1 stands for "over all"."""

    def __init__(self, frame: pd.DataFrame | None = None) -> None:
        self._frame = frame
        self._added: list[tuple[int, np.ndarray, str, str, np.ndarray]] = []

    def add(self, round: int, client: np.ndarray | int, split: str, metric: str, value: np.ndarray | float) -> None:
        """Append one value per client, or one value over all."""
        values = np.atleast_1d(np.asarray(value, np.float64))
        self._added.append((round, np.broadcast_to(np.asarray(client, np.int64), values.shape), split, metric, values))

    def frame(self) -> pd.DataFrame:
        """All rows so far, as one table."""
        if self._added:
            # One table of all that was added: a table costs as much as an evaluation of a small model.
            rounds, clients, splits, metrics, values = zip(*self._added, strict=True)
            lengths = [len(part) for part in values]
            columns = {
                "round": np.repeat(np.asarray(rounds, np.int64), lengths),
                "client": np.concatenate(clients),
                "split": np.repeat(np.asarray(splits, object), lengths),
                "metric": np.repeat(np.asarray(metrics, object), lengths),
                "value": np.concatenate(values),
            }
            added = pd.DataFrame(columns)
            self._frame = added if self._frame is None else pd.concat([self._frame, added], ignore_index=True)
            self._added = []
        if self._frame is None:
            return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in COLUMNS.items()})
        return self._frame


def to_arrays(frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """A table of these columns as plain arrays, for a file without pickle."""
    text = ("split", "metric")
    return {f"history/{name}": frame[name].to_numpy(dtype=str if name in text else None) for name in COLUMNS}


def from_arrays(arrays: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """The table whose `to_arrays` these are."""
    return pd.DataFrame({name: arrays[f"history/{name}"] for name in COLUMNS})

"""The tidy tables of a run, kept as columns while it goes."""

from __future__ import annotations

import numpy as np
import pandas as pd

OVER_ALL = -1
COLUMNS = ("round", "client", "split", "metric", "value")


class History:
    """Rows (round, client, split, metric, value) in the order they were made; client -1 stands for "over all"."""

    def __init__(self) -> None:
        self._parts: list[pd.DataFrame] = []

    def add(self, round: int, client: np.ndarray | int, split: str, metric: str, value: np.ndarray | float) -> None:
        """Append one value per client, or one value over all."""
        values = np.atleast_1d(np.asarray(value, np.float64))
        columns = {
            "round": np.full(len(values), round, np.int64),
            "client": np.broadcast_to(np.asarray(client, np.int64), values.shape),
            "split": split,
            "metric": metric,
            "value": values,
        }
        self._parts.append(pd.DataFrame(columns))

    def frame(self) -> pd.DataFrame:
        """All rows so far, as one table."""
        if not self._parts:
            return pd.DataFrame({name: pd.Series(dtype=object) for name in COLUMNS})
        self._parts = [pd.concat(self._parts, ignore_index=True)]
        return self._parts[0]

    def arrays(self) -> dict[str, np.ndarray]:
        """The same rows as plain arrays, for a checkpoint."""
        frame = self.frame()
        text = {name: frame[name].to_numpy(dtype=str) for name in ("split", "metric")}
        return {name: frame[name].to_numpy() for name in ("round", "client", "value")} | text

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray]) -> History:
        """The history whose `arrays()` these are."""
        history = cls()
        history._parts.append(pd.DataFrame({name: arrays[name] for name in COLUMNS}))
        return history

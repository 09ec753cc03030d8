"""Who was there: one line for each round and site, from which participation follows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

COLUMNS: dict[str, Any] = {
    "round": np.int64,
    "client": np.int64,
    "site": object,
    "online": bool,
    "asked": bool,
    "answered": bool,
    "used": bool,
    "failure": object,
}


class Attendance:
    """Lines (round, client, site, online, asked, answered, used, failure).

    answered: something came back in time. used: the upload entered the model. failure: why it did not, "" without one.
    """

    def __init__(self, sites: Iterable[str], frame: pd.DataFrame | None = None) -> None:
        self.sites = tuple(sites)
        self._lines: list[Any] = [] if frame is None else frame.to_dict("records")

    def add(
        self, number: int, online: Iterable[int], asked: Iterable[int], used: Iterable[int], failures: Mapping[int, str]
    ) -> None:
        """Enter a round: client numbers of who was online, asked and used, and why others were not."""
        there, had, entered = set(online), set(asked), set(used)
        for client, site in enumerate(self.sites):
            failure = failures.get(client, "")
            answered = client in had and failure != SILENT
            self._lines.append(
                dict(
                    zip(
                        COLUMNS,
                        (number, client, site, client in there, client in had, answered, client in entered, failure),
                        strict=True,
                    )
                )
            )

    def frame(self) -> pd.DataFrame:
        """All lines as one table."""
        table = pd.DataFrame(self._lines, columns=list(COLUMNS))
        return table.astype(COLUMNS)

    def participation(self) -> pd.DataFrame:
        """(round, client) of the uploads that were used, as a simulation has it."""
        table = self.frame()
        return table.loc[table["used"], ["round", "client"]].reset_index(drop=True)

    def frequencies(self, rounds: int) -> tuple[np.ndarray, np.ndarray]:
        """Share of rounds in which each site's upload was used [N], and its mean weight 1/|S| there, over its sum."""
        used = self.participation()
        counts, shares = np.zeros(len(self.sites)), np.zeros(len(self.sites))
        for _, members in used.groupby("round")["client"]:
            counts[members] += 1.0
            shares[members] += 1.0 / len(members)
        total = shares.sum()
        return counts / max(1, rounds), shares / total if total else np.full(len(shares), 1.0 / len(shares))


# The failure of a site that sent nothing in time.
SILENT = "no answer within the deadline"


def to_arrays(frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """The table as plain arrays, for a file without pickle."""
    return {
        f"attendance/{name}": frame[name].to_numpy(dtype=str if kind is object else kind)
        for name, kind in COLUMNS.items()
    }


def from_arrays(arrays: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """The table whose `to_arrays` these are."""
    return pd.DataFrame({name: arrays[f"attendance/{name}"] for name in COLUMNS})

"""Metrics of a model that sites took on their own rows, put together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fedhedge.deployment.exchange import Answers, number, table


class Metric(NamedTuple):
    """A metric on a split: of each site [N], NaN for one that did not tell, and over the rows of those that did."""

    split: str
    name: str
    per_client: np.ndarray
    over_all: float


def check_metrics(about: Mapping[str, Any]) -> None:
    """Raises Rejected unless the facts of a reply are metrics."""
    for split, told in table(about.get("splits"), "splits").items():
        number(table(told, split).get("rows"), "rows", low=1.0)
        for name, value in table(told.get("metrics"), split).items():
            number(value, name)


def together(answers: Answers, splits: tuple[str, ...], clients: int) -> list[Metric]:
    """The metrics of these splits over N clients."""
    found = []
    for split in splits:
        told = {
            client: reply.about["splits"][split]
            for client, reply in zip(answers.clients, answers.replies, strict=True)
            if split in reply.about["splits"]
        }
        for name in sorted({name for of_site in told.values() for name in of_site["metrics"]}):
            values, rows = np.full(clients, np.nan), np.zeros(clients)
            for client, of_site in told.items():
                if name in of_site["metrics"]:
                    values[client], rows[client] = of_site["metrics"][name], of_site["rows"]
            there = rows > 0
            over_all = float(np.sum(values[there] * rows[there]) / rows.sum())
            found.append(Metric(split, name, values, over_all))
    return found

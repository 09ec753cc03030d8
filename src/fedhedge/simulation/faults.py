"""Faults on top of availability: uploads that get lost, and clients that come without their state."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from fedhedge import checks, streams

Table = NDArray[np.bool_]


@dataclasses.dataclass(frozen=True)
class Faults:
    """What goes wrong at a visit, each with its own probability, independent of training and of availability.

    lost: probability that an upload is lost after the client has worked; the server averages what arrives.
    acknowledged: whether a client hears of the loss, and then keeps the state that it had; otherwise it keeps its new
    state, although the server never used the upload. forgets: probability that a client comes to a round with its
    initial state instead of the one that it stored.
    Raises InvalidInput for values outside [0, 1].
    """

    lost: float = 0.0
    acknowledged: bool = True
    forgets: float = 0.0

    def __post_init__(self) -> None:
        for name in ("lost", "forgets"):
            object.__setattr__(self, name, checks.number(name, getattr(self, name), low=0.0, high=1.0))
        checks.boolean("acknowledged", self.acknowledged)

    def schedule(self, seed: int, start: int, stop: int, clients: int) -> tuple[Table | None, Table | None]:
        """(whose upload would be lost, who would come without its state) in rounds start, ..., stop - 1: bool[R, N].

        None where the probability is 0. Round t is the same whatever the other rounds asked for.
        """
        return self._separate([self._draw(seed, t, clients) for t in range(start, stop)], np.stack)

    def of_cohorts(
        self, seed: int, start: int, cohorts: Sequence[NDArray[np.int64]], clients: int
    ) -> tuple[Table | None, Table | None]:
        """What `schedule` says of those who get through in rounds start, start + 1, ...: bool[E], round after round.

        cohorts: client numbers, one array for each round. clients: N.
        """
        drawn = [self._draw(seed, start + row, clients)[:, cohort] for row, cohort in enumerate(cohorts)]
        return self._separate(drawn, np.concatenate)

    def _draw(self, seed: int, round: int, clients: int) -> NDArray[np.float64]:
        return streams.generator(seed, streams.Purpose.FAULTS, round=round).random((2, clients))

    def _separate(
        self, drawn: list[NDArray[np.float64]], join: Callable[[list[NDArray[np.float64]]], NDArray[np.float64]]
    ) -> tuple[Table | None, Table | None]:
        return (
            join([row[0] for row in drawn]) < self.lost if self.lost else None,
            join([row[1] for row in drawn]) < self.forgets if self.forgets else None,
        )


def warnings_about(faults: Faults | None, client_state: int) -> list[str]:
    """What these faults break in a method that keeps `client_state` scalars at each client, in words."""
    if faults is None or not faults.lost or faults.acknowledged or not client_state:
        return []
    return [
        f"uploads are lost (probability {faults.lost:g}) without acknowledgement: clients then keep states that belong "
        f"to uploads which the server never saw, and what the method keeps at server and clients no longer agrees"
    ]

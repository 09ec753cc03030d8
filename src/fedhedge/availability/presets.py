"""Ready-made laws: the skewed law of the FedeRage paper, and availability tied to a client's data or to the hour.

The laws tied to data follow the availability modes of the FLGo simulator (its short names are given); labels are
0, ..., C - 1, and `strength` is that simulator's beta in [0, 1], 0 meaning that everyone is always there unless noted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedhedge import checks, streams
from fedhedge.availability import arguments
from fedhedge.availability.cycle import Cycle
from fedhedge.availability.fixed_size import FixedSize, prior_for
from fedhedge.availability.independent import Independent
from fedhedge.availability.markov import Markov
from fedhedge.checks import InvalidInput

_SPORADIC = (0.0107, 0.0078, 0.0053)


def sporadic(clients: int = 30, size: int = 3, rare: Mapping[int | str, float] | None = None) -> FixedSize:
    """A fixed number of clients a round, of which the rare ones get through only now and then (FedeRage, Section V).

    `rare` maps client numbers (or "27", as a configuration file spells them) to P(i in S); the other clients share
    the rest, (size - sum of rare) / (clients - number of rare) each. None: the last three with .0107, .0078, .0053.
    Raises InvalidInput when a rare client does not exist or the others would have to be there always.
    """
    clients = checks.integer("clients", clients, low=2 if rare is not None else len(_SPORADIC) + 1)
    size = checks.integer("size", size, low=1, high=clients)
    if rare is None:
        rare = dict(zip(range(clients - len(_SPORADIC), clients), _SPORADIC, strict=True))
    inclusion = np.full(clients, np.nan)
    for client, probability in rare.items():
        number = int(client) if isinstance(client, str) and client.strip().isdecimal() else client
        number = checks.integer("client in rare", number, low=0, high=clients - 1)
        inclusion[number] = checks.number(f"rare[{client}]", probability, low=0, below=1)
    others = np.isnan(inclusion)
    left = size - inclusion[~others].sum()
    if not 0 < left < others.sum():
        allowed = f"probabilities that leave between 0 and 1 for each of the other {others.sum()} clients"
        raise InvalidInput("rare", dict(rare), allowed, f"{left:g} is left for them together")
    inclusion[others] = left / others.sum()
    return FixedSize(prior_for(inclusion, size), size)


def persistent(share: Any, correlation: float) -> Markov:
    """`Independent(share)` with memory: the same share of rounds, correlation `correlation`^k between rounds k apart.

    `share` is q_i in [0, 1], a number or one per client; `correlation` is in [0, 1).
    """
    given = arguments.probabilities("share", share)
    change = 1 - checks.number("correlation", correlation, low=0, below=1)
    return Markov(arrive=change * given, leave=change * (1 - given))


def high_labels_first(labels: Sequence[Iterable[int]], strength: float, classes: int | None = None) -> Independent:
    """Clients with high labels come more often: q_i = strength min(labels_i) / (C - 1) + 1 - strength (YMF)."""
    sets, count = _label_sets(labels, classes)
    strength = checks.number("strength", strength, low=0, high=1)
    lowest = np.array([min(held) for held in sets])
    return Independent(strength * lowest / max(1, count - 1) + (1 - strength))


def many_labels_first(labels: Sequence[Iterable[int]], strength: float, classes: int | None = None) -> Independent:
    """Clients with more of the labels come more often: q_i = strength |labels_i| / C + 1 - strength (YFF)."""
    sets, count = _label_sets(labels, classes)
    strength = checks.number("strength", strength, low=0, high=1)
    return Independent(strength * np.array([len(held) for held in sets]) / count + (1 - strength))


def more_data_first(sizes: Sequence[int], power: float) -> Independent:
    """Clients with more rows come more often: q_i = (n_i / max n)^power, power >= 0 (MDF)."""
    rows = _row_counts(sizes)
    return Independent((rows / rows.max()) ** checks.number("power", power, low=0))


def less_data_first(sizes: Sequence[int], power: float) -> Independent:
    """Clients with fewer rows come more often: q_i = (min n / n_i)^power, power >= 0 (LDF)."""
    rows = _row_counts(sizes)
    return Independent((rows.min() / rows) ** checks.number("power", power, low=0))


def lognormal(clients: int, strength: float, seed: int = 0) -> Independent:
    """q_i = T_i / max T with log T_i normal, mean 0, standard deviation -log(1 - strength) (LN; arXiv 2205.06730)."""
    return Independent(_lognormal_shares(clients, strength, seed))


def daily_lognormal(clients: int, strength: float, seed: int = 0, period: int = 24) -> Cycle:
    """`lognormal` times the hour: (0.4 sin(2 pi t / period) + 0.5) T_i / max T (SLN; arXiv 2205.06730)."""
    hour = np.arange(checks.integer("period", period, low=1)) / period
    return Cycle(np.outer(0.4 * np.sin(2 * np.pi * hour) + 0.5, _lognormal_shares(clients, strength, seed)))


def label_cycle(
    labels: Sequence[Iterable[int]], strength: float, classes: int | None = None, period: int = 24
) -> Cycle:
    """Clients come when the hour sweeps over their labels (YC).

    q_i(t) = strength 1{min labels_i <= (C - 1) r <= max labels_i} + 1 - strength, r = (1 + t mod period) / period. A
    client with a single label is hit only where the sweep falls on it exactly.
    """
    sets, count = _label_sets(labels, classes)
    strength = checks.number("strength", strength, low=0, high=1)
    period = checks.integer("period", period, low=1)
    # Whole numbers, so that a label on the border is not lost to rounding.
    sweep = np.arange(1, period + 1)[:, None] * (count - 1)
    lowest, highest = np.array([(min(held), max(held)) for held in sets]).T * period
    return Cycle(strength * ((lowest <= sweep) & (sweep <= highest)) + (1 - strength))


def _label_sets(labels: Sequence[Iterable[int]], classes: int | None) -> tuple[list[set[int]], int]:
    sets = [{checks.integer(f"labels[{i}]", label, low=0) for label in held} for i, held in enumerate(labels)]
    if not sets or not all(sets):
        raise InvalidInput("labels", labels, "the labels of each client, at least one")
    most = 1 + max(max(held) for held in sets)
    return sets, most if classes is None else checks.integer("classes", classes, low=most)


def _row_counts(sizes: Sequence[int]) -> NDArray[np.float64]:
    if not len(sizes):
        raise InvalidInput("sizes", list(sizes), "the number of rows of each client")
    return np.array([checks.integer(f"sizes[{i}]", rows, low=1) for i, rows in enumerate(sizes)], dtype=np.float64)


def _lognormal_shares(clients: int, strength: float, seed: int) -> NDArray[np.float64]:
    clients = checks.integer("clients", clients, low=1)
    spread = -np.log1p(-checks.number("strength", strength, low=0, below=1))
    rng = streams.generator(streams.check_seed(seed), streams.Purpose.AVAILABILITY)
    exponent = spread * rng.standard_normal(clients)
    return np.asarray(np.exp(exponent - exponent.max()), dtype=np.float64)

"""Who got through, against what the law of availability says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fedhedge import checks

if TYPE_CHECKING:
    from fedhedge.simulation import Run

_CERTAIN = 1e-12


def participation(runs: Run | Sequence[Run]) -> pd.DataFrame:
    """Participation of each client, counted over the rounds of one run or of several with the same law.

    Columns, one row a client: client; got_through (rounds); expected = R P(i in S) for R rounds; inclusion = P(i in S);
    z = (got_through - expected) / sqrt(R P (1 - P)), 0 where a certain outcome happened and +-inf where it did not;
    weight = p_i, the weight that uniform averaging of what arrives gives the client (FedeRage, eq. 8);
    observed_weight, the mean of 1{i in S}/|S| over the non-empty rounds, which tends to p_i; uniform_weight = 1/N.
    z takes rounds as independent: under a law with memory (Markov, groups of hours) it is too large. Where the method
    selects clients or uploads get lost, got_through counts what was used, and z says how far that is from the law.
    Raises InvalidInput when the runs have different laws.
    """
    together = list(runs) if isinstance(runs, Sequence) else [runs]
    if not together:
        raise checks.InvalidInput("runs", runs, "at least one run")
    inclusion, weights = together[0].inclusion_probabilities, together[0].weights
    for run in together[1:]:
        if not np.array_equal(run.weights, weights) or not np.array_equal(run.inclusion_probabilities, inclusion):
            allowed = f"the law of the first run ({together[0].settings['availability']})"
            raise checks.InvalidInput("availability", run.settings["availability"], allowed)
    clients = len(weights)
    rounds = sum(run.counts["rounds"] for run in together)
    counts = np.sum([_counts(run, clients) for run in together], axis=0)
    shares = np.sum([_shares(run, clients) for run in together], axis=0)
    filled = rounds - sum(run.counts["empty_rounds"] for run in together)
    return pd.DataFrame(
        {
            "client": np.arange(clients),
            "got_through": counts,
            "expected": rounds * inclusion,
            "inclusion": inclusion,
            "z": _z_scores(counts, rounds, inclusion),
            "weight": weights,
            "observed_weight": shares / filled if filled else np.zeros(clients),
            "uniform_weight": np.full(clients, 1.0 / clients),
        }
    )


def _counts(run: Run, clients: int) -> np.ndarray:
    return np.bincount(run.participation["client"], minlength=clients)


def _shares(run: Run, clients: int) -> np.ndarray:
    """Sum over rounds of 1{i in S}/|S|."""
    size = run.participation.groupby("round")["client"].transform("size")
    return np.bincount(run.participation["client"], weights=1.0 / size, minlength=clients)


def _z_scores(counts: np.ndarray, rounds: int, inclusion: np.ndarray) -> np.ndarray:
    excess = counts - rounds * inclusion
    variance = rounds * inclusion * (1.0 - inclusion)
    certain = variance < _CERTAIN * rounds
    # A count is a whole number, so that less than half a round apart is rounding.
    settled = np.where(np.abs(excess) < 0.5, 0.0, np.copysign(np.inf, excess))
    return np.where(certain, settled, excess / np.sqrt(np.where(certain, 1.0, variance)))

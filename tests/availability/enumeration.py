"""Brute force: the law of S as an explicit dictionary from subsets to probabilities, and what follows from it."""

from __future__ import annotations

import itertools
import math

import numpy as np

from fedhedge import streams

ROUNDS = 10_000
THRESHOLD = 4.5


def independent(probabilities):
    clients = range(len(probabilities))
    return {
        subset: math.prod(probabilities[i] if i in subset else 1 - probabilities[i] for i in clients)
        for size in range(len(probabilities) + 1)
        for subset in itertools.combinations(clients, size)
    }


def successive(prior, size):
    """Draw by draw, over all ordered draws."""
    law = {}
    for order in itertools.permutations([i for i, r in enumerate(prior) if r > 0], size):
        probability = 1.0
        left = math.fsum(prior)
        for i in order:
            probability *= prior[i] / left
            left = math.fsum(r for j, r in enumerate(prior) if j not in order[: order.index(i) + 1])
        subset = tuple(sorted(order))
        law[subset] = law.get(subset, 0.0) + probability
    return law


def grouped(groups, law_of_groups):
    law = {}
    for chosen, probability in law_of_groups.items():
        subset = tuple(sorted(i for g in chosen for i in groups[g]))
        law[subset] = law.get(subset, 0.0) + probability
    return law


def mixture(laws):
    law = {}
    for part in laws:
        for subset, probability in part.items():
            law[subset] = law.get(subset, 0.0) + probability / len(laws)
    return law


def thinned(law, rate):
    """Every subset of every subset, each member lost with its own rate."""
    left = {}
    for subset, probability in law.items():
        for size in range(len(subset) + 1):
            for kept in itertools.combinations(subset, size):
                chance = math.prod(1 - rate[i] if i in kept else rate[i] for i in subset)
                left[kept] = left.get(kept, 0.0) + probability * chance
    return left


def inclusion(law, clients):
    return np.array([math.fsum(p for subset, p in law.items() if i in subset) for i in range(clients)])


def weights(law, clients):
    """Eq. (8), given that the round is not empty."""
    arrived = math.fsum(p for subset, p in law.items() if subset)
    shares = [math.fsum(p / len(subset) for subset, p in law.items() if i in subset) for i in range(clients)]
    return np.array(shares) / arrived


def sizes(law, largest):
    return np.array([math.fsum(p for subset, p in law.items() if len(subset) == m) for m in range(largest + 1)])


def assert_results(law, enumerated, tolerance=1e-10):
    """Every result of `law` against the enumerated law."""
    clients = law.clients
    close = {"rtol": 0, "atol": tolerance}
    np.testing.assert_allclose(law.inclusion_probabilities(), inclusion(enumerated, clients), **close)
    np.testing.assert_allclose(law.weights(), weights(enumerated, clients), **close)
    np.testing.assert_allclose(law.empty_probability(), enumerated.get((), 0.0), **close)
    possible = max(len(subset) for subset, p in enumerated.items() if p > 0)
    assert law.largest() >= possible
    np.testing.assert_allclose(law.sizes(), sizes(enumerated, law.largest()), **close)


def draws(law, rounds=ROUNDS):
    """Independent single rounds: bool[rounds, N]."""
    purpose = streams.Purpose.AVAILABILITY
    return np.stack([law.sample(streams.generator(20, purpose, round=t), t) for t in range(rounds)])


def assert_frequencies(present, probabilities, correlation_time=1.0):
    """Share of rounds per client within 4.5 standard errors of the probabilities.

    P(a right law fails) is about 7e-6 a client. `correlation_time` is the factor by which correlation between rounds
    raises the variance of the mean.
    """
    error = np.sqrt(probabilities * (1 - probabilities) * correlation_time / len(present))
    assert (np.abs(present.mean(axis=0) - probabilities) <= THRESHOLD * error + 1e-12).all()


def assert_shares(present, expected):
    """Mean of 1{i in S} / |S| over non-empty rounds within 4.5 standard errors of the weights."""
    arrived = present[present.any(axis=1)]
    shares = arrived / arrived.sum(axis=1, keepdims=True)
    error = shares.std(axis=0) / np.sqrt(len(shares))
    assert (np.abs(shares.mean(axis=0) - expected) <= THRESHOLD * error + 1e-12).all()

"""Laws of very many clients that draw a round's clients themselves: the same law, in the memory of who comes."""

import tracemalloc

import numpy as np
import pytest
from scipy import stats

from fedhedge import streams
from fedhedge.availability import Everyone, FixedSize, Independent, Markov
from fedhedge.availability.base import DIRECT_FROM

MANY = DIRECT_FROM
DIRECT = [FixedSize(size=50).bind(MANY), Independent(0.01).bind(MANY)]
LAWS = [
    *DIRECT,
    FixedSize(np.arange(1, 13), 3),
    Independent([0.1, 0.5, 1.0, 0.0]),
    Independent(np.linspace(0.0, 0.02, MANY)),
    Markov([0.2] * 5, [0.3] * 5),
    Everyone(4),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_cohorts_schedule_and_sample_say_the_same(law):
    cohorts = law.cohorts(3, 5, 25)
    for cohort, row in zip(cohorts, law.schedule(3, 5, 25), strict=True):
        np.testing.assert_array_equal(cohort, np.flatnonzero(row))
    assert len(law.cohorts(3, 7, 7)) == 0
    np.testing.assert_array_equal(law.cohorts(3, 9, 10)[0], cohorts[4])


def test_a_direct_law_is_one_of_many_equal_clients():
    assert all(law.direct for law in DIRECT)
    assert not FixedSize(size=50).bind(MANY - 1).direct
    assert not Independent(np.linspace(0.0, 0.02, MANY)).direct
    assert not FixedSize(np.arange(1, MANY + 1), 50).direct


@pytest.mark.parametrize("law", DIRECT, ids=["fixed size", "independent"])
def test_frequencies_of_clients_and_pairs(law):
    """Counts of clients, and of neighbours, over many rounds against their means and variances."""
    rounds, q = 4000, 0.01
    cohorts = law.cohorts(0, 0, rounds)
    assert all((np.diff(cohort) > 0).all() for cohort in cohorts)
    counts = np.bincount(np.concatenate(cohorts), minlength=MANY)
    # Every client is binomial; their sum of squares is nearly chi-squared, normal for so many.
    spread = ((counts - rounds * q) ** 2 / (rounds * q * (1 - q))).sum()
    assert abs(spread - MANY) <= 4.5 * np.sqrt(2 * MANY)
    pairs = sum(int((np.diff(cohort) == 1).sum()) for cohort in cohorts)
    together = q * q if isinstance(law, Independent) else q * 49 / (MANY - 1)
    mean = rounds * (MANY - 1) * together
    assert abs(pairs - mean) <= 4.5 * np.sqrt(mean)


def test_sizes_of_an_independent_law_are_binomial():
    sizes = [len(cohort) for cohort in DIRECT[1].cohorts(1, 0, 3000)]
    edges = np.array([0, 40, 44, 47, 49, 51, 53, 56, 60, MANY + 1])
    expected = 3000 * np.diff(stats.binom.cdf(edges - 1, MANY, 0.01))
    assert stats.chisquare(np.histogram(sizes, edges)[0], expected).pvalue > 1e-4
    assert abs(np.mean(sizes) - 50) <= 4.5 * np.sqrt(50 / 3000)


def test_fewer_clients_are_drawn_as_ever():
    """The draws on which recorded results rest: an exponential clock, or a uniform, for each client."""
    rng = streams.generator(2, streams.Purpose.AVAILABILITY, round=8)
    clocks = rng.exponential(size=40)
    np.testing.assert_array_equal(FixedSize(size=4).bind(40).cohorts(2, 8, 9)[0], np.sort(np.argsort(clocks)[:4]))
    rng = streams.generator(2, streams.Purpose.AVAILABILITY, round=8)
    np.testing.assert_array_equal(Independent(0.3).bind(40).cohorts(2, 8, 9)[0], np.flatnonzero(rng.random(40) < 0.3))


@pytest.mark.parametrize("law", [FixedSize(size=100).bind(10**6), Independent(1e-4).bind(10**6)], ids=str)
def test_memory_is_that_of_who_comes(law):
    law.cohorts(0, 0, 1)
    tracemalloc.start()
    law.cohorts(0, 0, 500)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * 2**20


@pytest.mark.parametrize("probabilities", [np.linspace(0.0, 0.02, 3000), np.r_[np.full(2500, 1e-3), 0.9, 0.5]])
def test_weights_of_many_clients_agree_with_the_whole_gauss_rule(probabilities):
    """E[1{i in S} / |S|] = q_i E[1 / (1 + B)], B the number of the others, by the exact law of their number."""
    law = Independent(probabilities)
    weights = law.weights()
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    for i in (0, 1, len(probabilities) // 2, len(probabilities) - 1):
        others = np.zeros(400)
        others[0] = 1.0
        for q in np.delete(probabilities, i):
            others[1:], others[0] = others[1:] * (1 - q) + others[:-1] * q, others[0] * (1 - q)
        share = probabilities[i] * (others / np.arange(1, 401)).sum()
        assert weights[i] == pytest.approx(share / (1 - law.empty_probability()), rel=1e-9)

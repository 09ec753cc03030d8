import numpy as np
import pytest
from enumeration import THRESHOLD, assert_frequencies, assert_results, independent

from fedhedge.availability import Independent, Markov
from fedhedge.checks import InvalidInput

ARRIVE = np.array([0.02, 0.3, 0.9, 0.0, 0.5])
LEAVE = np.array([0.1, 0.3, 0.8, 0.4, 0.0])
ROUNDS = 20_000


def test_results_are_those_of_the_stationary_law():
    share = ARRIVE / (ARRIVE + LEAVE)
    assert_results(Markov(ARRIVE, LEAVE), independent(share))


def test_share_of_rounds():
    share, memory = ARRIVE / (ARRIVE + LEAVE), 1 - ARRIVE - LEAVE
    present = Markov(ARRIVE, LEAVE).schedule(4, 0, ROUNDS)
    # Variance of the mean of a two-state chain: q (1 - q) / T times (1 + memory) / (1 - memory), asymptotically.
    assert_frequencies(present, share, correlation_time=(1 + memory) / (1 - memory))


def test_transitions_between_rounds():
    present = Markov(ARRIVE, LEAVE).schedule(5, 0, ROUNDS)
    before, after = present[:-1], present[1:]
    for i in range(5):
        for state, probability in ((False, ARRIVE[i]), (True, 1 - LEAVE[i])):
            following = after[before[:, i] == state, i]
            if len(following):
                assert_frequencies(following[:, None], np.array([probability]))


def test_autocorrelation_falls_geometrically():
    arrive, leave, lag = 0.05, 0.15, 3
    present = Markov([arrive] * 20, [leave] * 20).schedule(6, 0, ROUNDS).astype(float)
    share = 0.25
    estimates = ((present[:-lag] - share) * (present[lag:] - share)).mean(axis=0) / (share * (1 - share))
    # Twenty independent chains give the standard error of their mean.
    error = estimates.std(ddof=1) / np.sqrt(20)
    assert abs(estimates.mean() - (1 - arrive - leave) ** lag) <= THRESHOLD * error


def test_every_round_follows_the_stationary_law_over_seeds():
    law = Markov(ARRIVE, LEAVE)
    for t in (0, 1, 7):
        rounds = np.concatenate([law.schedule(seed, t, t + 1) for seed in range(3000)])
        assert_frequencies(rounds, ARRIVE / (ARRIVE + LEAVE))


def test_a_late_round_is_the_one_reached_from_round_zero():
    slow = Markov([0.001, 0.002, 1.0], [0.003, 0.001, 1.0])
    whole = slow.schedule(9, 0, 400)
    assert (slow.schedule(9, 399, 400)[0] == whole[399]).all()
    # The third client changes in every round: only its first state is random.
    assert (whole[1:, 2] != whole[:-1, 2]).all()


def test_a_chain_that_forgets_is_independent():
    law = Markov(0.3, 0.7).bind(4)
    assert (law.schedule(2, 0, 300) == Independent(0.3).bind(4).schedule(2, 0, 300)).all()


@pytest.mark.parametrize(
    ("arrive", "leave", "message"),
    [
        ([0.1, 0.0], [0.2, 0.0], "arrive, leave: .*client 1 never changes"),
        (0.0, 0.5, "arrive: received 0.0; allowed: at least one positive entry"),
        ([0.1, 0.2], [0.1, 0.2, 0.3], "leave: .*2 probabilities, as many as in arrive"),
        (1.1, 0.5, "arrive: received 1.1"),
        (0.5, -0.1, "leave: received -0.1"),
    ],
)
def test_bad_arguments(arrive, leave, message):
    with pytest.raises(InvalidInput, match=message):
        Markov(arrive, leave)

import numpy as np
import pytest
from scipy import stats

from evaluation.made_runs import make_run
from fedhedge.availability import Independent
from fedhedge.checks import InvalidInput
from fedhedge.evaluation import participation


def simulated(probabilities, rounds, seed):
    law = Independent(probabilities)
    pairs = np.argwhere(law.schedule(seed, 0, rounds))
    evaluations = np.full((2, len(probabilities)), 0.5)
    empty = rounds - len(np.unique(pairs[:, 0]))
    return make_run(
        evaluations,
        every=rounds,
        seed=seed,
        through=pairs,
        inclusion=law.inclusion_probabilities(),
        weights=law.weights(),
        empty_rounds=empty,
    )


def test_counts_shares_and_scores_by_hand():
    through = [(0, 0), (0, 1), (1, 0), (3, 0)]
    run = make_run(
        np.zeros((2, 3)), every=4, through=through, inclusion=[0.5, 0.25, 0.0], weights=[0.7, 0.3, 0.0], empty_rounds=1
    )
    table = participation(run)
    assert table["got_through"].tolist() == [3, 1, 0]
    assert table["expected"].tolist() == [2.0, 1.0, 0.0]
    assert table["observed_weight"].tolist() == pytest.approx([2.5 / 3, 0.5 / 3, 0.0])
    assert table["z"].tolist() == pytest.approx([1.0, 0.0, 0.0])
    assert table["uniform_weight"].tolist() == pytest.approx([1 / 3] * 3)


def test_what_cannot_happen_has_an_infinite_score():
    run = make_run(np.zeros((2, 2)), every=4, through=[(0, 0)], inclusion=[0.0, 1.0], weights=[0.5, 0.5])
    assert participation(run)["z"].tolist() == [np.inf, -np.inf]


def test_scores_are_standard_normal_and_observed_weights_tend_to_the_law():
    probabilities = np.linspace(0.02, 0.2, 60)
    runs = [simulated(probabilities, 2000, seed) for seed in range(3)]
    table = participation(runs)
    # Kolmogorov-Smirnov at level 0.001: clients of `Independent` are independent of each other.
    assert stats.kstest(table["z"], "norm").pvalue > 1e-3
    error = np.sqrt(table["weight"] / 6000)
    assert (np.abs(table["observed_weight"] - table["weight"]) < 4.5 * error).all()
    assert table["observed_weight"].sum() == pytest.approx(1.0)


def test_several_runs_add_up():
    runs = [simulated([0.3, 0.6], 50, seed) for seed in (1, 2)]
    single = [participation(run)["got_through"].to_numpy() for run in runs]
    assert participation(runs)["got_through"].tolist() == (single[0] + single[1]).tolist()
    assert participation(runs)["expected"].tolist() == pytest.approx([30.0, 60.0])


def test_runs_of_different_laws_are_refused():
    with pytest.raises(InvalidInput, match="availability"):
        participation([simulated([0.3, 0.6], 50, 0), simulated([0.3, 0.5], 50, 0)])
    with pytest.raises(InvalidInput, match="at least one run"):
        participation([])

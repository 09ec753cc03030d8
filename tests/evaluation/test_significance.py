import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evaluation.made_runs import make_run
from fedhedge.checks import InvalidInput
from fedhedge.evaluation import paired_difference, paired_t, per_client, two_sample_z, z_test

SEED = st.integers(0, 10_000)


@given(SEED, st.integers(2, 9), st.floats(0.5, 0.999))
def test_the_paired_interval_is_that_of_scipy(seed, pairs, level):
    rng = np.random.default_rng(seed)
    ours, theirs = rng.normal(size=(2, pairs))
    ours += 0.3
    expected = stats.ttest_rel(ours, theirs)
    interval = expected.confidence_interval(level)
    found = paired_t(ours, theirs, level)
    assert (found.low, found.high, found.p_value) == pytest.approx((interval.low, interval.high, expected.pvalue))
    assert found.difference == pytest.approx(ours.mean() - theirs.mean())
    assert found.pairs == pairs


def test_differences_without_spread_give_a_point():
    same = paired_t([0.5, 0.7], [0.5, 0.7])
    assert (same.low, same.high, same.p_value) == (0.0, 0.0, 1.0)
    shifted = paired_t([1.5, 2.5], [1.0, 2.0])
    assert (shifted.low, shifted.high, shifted.p_value) == (0.5, 0.5, 0.0)


@pytest.mark.parametrize(("ours", "theirs"), [([1.0], [2.0]), ([1, 2], [1, 2, 3]), ([1, np.nan], [1, 2])])
def test_pairs_that_cannot_be_compared_are_refused(ours, theirs):
    with pytest.raises(InvalidInput):
        paired_t(ours, theirs)


def test_runs_are_paired_by_seed_whatever_their_order():
    ours = [make_run([[0.0], [value]], seed=seed) for seed, value in ((0, 0.9), (1, 0.7), (2, 0.8), (9, 0.1))]
    theirs = [make_run([[0.0], [value]], seed=seed) for seed, value in ((2, 0.5), (0, 0.6), (1, 0.6))]
    found = paired_difference(ours, theirs, lambda run: per_client(run).mean())
    expected = stats.ttest_rel([0.9, 0.7, 0.8], [0.6, 0.6, 0.5]).confidence_interval(0.95)
    assert (found.low, found.high, found.pairs) == (pytest.approx(expected.low), pytest.approx(expected.high), 3)


def test_seeds_must_be_common_and_single():
    ours = [make_run([[0.5]], seed=seed) for seed in (0, 1)]
    with pytest.raises(InvalidInput, match=r"common seeds: received \[1\]; allowed: at least two"):
        paired_difference(ours, [make_run([[0.5]], seed=1)], lambda run: 0.0)
    with pytest.raises(InvalidInput, match=r"seeds of theirs: received \[1, 1\]"):
        paired_difference(ours, [make_run([[0.5]], seed=1)] * 2, lambda run: 0.0)


@given(SEED, st.integers(2, 30), st.integers(2, 30))
def test_z_is_welchs_statistic_under_a_normal_law(seed, n, m):
    rng = np.random.default_rng(seed)
    ours, theirs = rng.normal(0.2, 1.0, n), rng.normal(0.0, 2.0, m)
    expected = stats.ttest_ind(ours, theirs, equal_var=False).statistic
    found = two_sample_z(ours, theirs)
    assert found.z == pytest.approx(expected)
    assert found.p_value == pytest.approx(2 * stats.norm.sf(abs(expected)))


def test_z_test_takes_the_client_means_of_the_last_evaluations_of_all_runs():
    rng = np.random.default_rng(0)
    tables = rng.random((2, 3, 12, 4))
    ours, theirs = ([make_run(table, seed=seed) for seed, table in enumerate(side)] for side in tables)
    means = tables.mean(axis=3)[:, :, -10:].reshape(2, -1)
    expected = stats.ttest_ind(means[0], means[1], equal_var=False).statistic
    assert z_test(ours, theirs).z == pytest.approx(expected)


def test_z_test_refuses_what_it_cannot_use():
    run = make_run(np.full((3, 2), 0.5))
    with pytest.raises(InvalidInput, match="last: received 10; allowed: a whole number from 1 to 3"):
        z_test([run], [run])
    with pytest.raises(InvalidInput, match="variance"):
        z_test([run], [run], last=3)
    with pytest.raises(InvalidInput, match="theirs: received"):
        two_sample_z([1.0, 2.0], [1.0])

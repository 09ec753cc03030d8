import numpy as np
import pytest
from enumeration import THRESHOLD

from fedhedge.availability import Cycle, FixedSize, Independent, presets
from fedhedge.checks import InvalidInput

LABELS = [{0, 1}, {4}, [2, 3, 3], range(5)]


def test_sporadic_is_the_law_of_the_paper():
    law = presets.sporadic()
    assert isinstance(law, FixedSize)
    assert law.size == 3
    inclusion = law.inclusion_probabilities()
    np.testing.assert_allclose(inclusion[27:], [0.0107, 0.0078, 0.0053], rtol=1e-10)
    np.testing.assert_allclose(inclusion[:27], 0.11023, atol=5e-6)
    np.testing.assert_allclose(law.weights(), inclusion / 3, rtol=1e-14)
    assert presets.sporadic(rare={"27": 0.0107, "28": 0.0078, 29: 0.0053}) == law


def test_sporadic_elsewhere():
    inclusion = presets.sporadic(10, 4, {"2": 0.01}).inclusion_probabilities()
    np.testing.assert_allclose(inclusion, np.where(np.arange(10) == 2, 0.01, 3.99 / 9), rtol=1e-10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rare": {30: 0.01}}, "client in rare: received 30; allowed: a whole number from 0 to 29"),
        ({"rare": {"last": 0.01}}, "client in rare: received 'last'"),
        ({"rare": {1: 1.0}}, r"rare\[1\]: received 1.0"),
        ({"clients": 4, "size": 4, "rare": {0: 0.1}}, "rare: .*3.9 is left for them together"),
        ({"clients": 2, "size": 1, "rare": {0: 0.5, 1: 0.5}}, "rare: received"),
        ({"size": 31}, "size: received 31"),
        ({"clients": 3}, "clients: received 3; allowed: a whole number, 4 or more"),
    ],
)
def test_sporadic_refuses(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        presets.sporadic(**arguments)


def test_persistent_is_independent_with_memory():
    share = [0.1, 0.5, 0.0]
    law = presets.persistent(share, correlation=0.9)
    np.testing.assert_allclose(law.inclusion_probabilities(), share, rtol=1e-13)
    np.testing.assert_allclose(law.weights(), Independent(share).weights(), rtol=1e-12)
    present = presets.persistent([0.3] * 20, 0.9).schedule(0, 0, 5000) - 0.3
    estimates = (present[1:] * present[:-1]).mean(axis=0) / 0.21
    assert abs(estimates.mean() - 0.9) <= THRESHOLD * estimates.std(ddof=1) / np.sqrt(20)


def test_label_laws_by_hand():
    # C = 5: lowest labels 0, 4, 2, 0 of 4; 2, 1, 2, 5 labels of 5.
    np.testing.assert_allclose(presets.high_labels_first(LABELS, 0.4).probabilities, [0.6, 1.0, 0.8, 0.6])
    np.testing.assert_allclose(presets.many_labels_first(LABELS, 0.5).probabilities, [0.7, 0.6, 0.7, 1.0])
    np.testing.assert_allclose(presets.high_labels_first(LABELS, 0.4, classes=9).probabilities, [0.6, 0.8, 0.7, 0.6])


def test_data_laws_by_hand():
    np.testing.assert_allclose(presets.more_data_first([10, 40, 160], 0.5).probabilities, [0.25, 0.5, 1])
    np.testing.assert_allclose(presets.less_data_first([10, 40, 160], 0.5).probabilities, [1, 0.5, 0.25])
    np.testing.assert_allclose(presets.more_data_first([10, 40, 160], 0).probabilities, 1)


def test_lognormal_shares():
    q = np.asarray(presets.lognormal(2000, 0.5, seed=1).probabilities)
    assert q.max() == 1
    # Up to a constant log q is normal with standard deviation s = -log(1 - 0.5), estimated within s / sqrt(2 n).
    spread = np.log(2)
    assert abs(np.log(q).std(ddof=1) - spread) <= THRESHOLD * spread / np.sqrt(2 * 2000)
    assert presets.lognormal(10, 0.5, seed=1) == presets.lognormal(10, 0.5, seed=1)
    assert presets.lognormal(10, 0.5, seed=1) != presets.lognormal(10, 0.5, seed=2)
    np.testing.assert_array_equal(presets.lognormal(5, 0.0).probabilities, 1)


def test_daily_lognormal_has_its_noon_and_its_night():
    law = presets.daily_lognormal(6, 0.3, seed=4)
    shares = np.asarray(presets.lognormal(6, 0.3, seed=4).probabilities)
    table = np.asarray(law.probabilities)
    assert law.period == 24
    np.testing.assert_allclose(table[[0, 6, 12, 18]], np.outer([0.5, 0.9, 0.5, 0.1], shares), rtol=1e-12)
    np.testing.assert_allclose(law.inclusion_probabilities(), 0.5 * shares, rtol=1e-12)


def test_label_cycle_by_hand():
    # C = 5, period 4: the sweep is at labels 1, 2, 3, 4.
    law = presets.label_cycle(LABELS, 0.8, period=4)
    assert isinstance(law, Cycle)
    hit = np.array([[1, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 0, 1]])
    np.testing.assert_allclose(law.probabilities, 0.2 + 0.8 * hit)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: presets.high_labels_first([{0}, set()], 0.1), "labels: received"),
        (lambda: presets.high_labels_first([{0}, {1}], 1.1), "strength: received 1.1"),
        (lambda: presets.many_labels_first([{0}, {7}], 0.1, classes=5), "classes: received 5; .*8 or more"),
        (lambda: presets.more_data_first([3, 0], 1.0), r"sizes\[1\]: received 0"),
        (lambda: presets.less_data_first([3, 1], -1.0), "power: received -1.0"),
        (lambda: presets.less_data_first([], 1.0), "sizes: received"),
        (lambda: presets.lognormal(3, 1.0), "strength: received 1.0"),
        (lambda: presets.label_cycle([{0, 1}], 0.5, period=0), "period: received 0"),
        (lambda: presets.persistent(0.5, 1.0), "correlation: received 1.0"),
    ],
)
def test_bad_arguments(build, message):
    with pytest.raises(InvalidInput, match=message):
        build()

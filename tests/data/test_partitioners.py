"""What every partition must keep, and what each rule promises."""

import json

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from fedhedge import InvalidInput
from fedhedge.data import ByLabel, Dirichlet, Dominant, Iid, Imbalanced, Partitioner
from fedhedge.data.partitioners.base import deal


def table(partitioner: Partitioner, labels: np.ndarray, classes: int, seed: int = 0) -> np.ndarray:
    """Rows of each class at each client, int[K, N], by plain counting."""
    client = partitioner.assign(labels, classes, np.random.default_rng(seed))
    assert client.shape == labels.shape
    assert client.dtype == np.int32
    result = np.zeros((classes, partitioner.clients), int)
    for label, owner in zip(labels, client, strict=True):
        result[label, owner] += 1
    return result


CLASSES, SEEDS = 4, st.integers(0, 2**32 - 1)
LABELS = st.lists(st.integers(0, CLASSES - 1), max_size=200).map(lambda values: np.array(values, np.int32))
RULES = st.one_of(
    st.builds(Iid, st.integers(1, 9)),
    st.builds(Imbalanced, st.integers(1, 9), rotate=st.booleans()),
    st.builds(Dominant, st.integers(1, 9), st.floats(0.01, 1.0)),
    st.builds(ByLabel, st.integers(4, 9), st.integers(1, CLASSES)),
)


@given(RULES, LABELS, SEEDS)
def test_every_class_is_dealt_whole_and_by_its_shares(rule: Partitioner, labels: np.ndarray, seed: int) -> None:
    counts = np.bincount(labels, minlength=CLASSES)
    dealt = table(rule, labels, CLASSES, seed)
    shares = rule.shares(counts, np.random.default_rng(seed))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(dealt.sum(axis=1), counts)
    assert (np.abs(dealt - shares * counts[:, None]) < 1 + 1e-6).all()
    assert (dealt[shares == 0.0] == 0).all()
    np.testing.assert_array_equal(table(rule, labels, CLASSES, seed), dealt)


@given(st.integers(1, 12), LABELS, SEEDS)
def test_iid_sizes_differ_by_one_row(clients: int, labels: np.ndarray, seed: int) -> None:
    dealt = table(Iid(clients), labels, CLASSES, seed)
    assert np.ptp(dealt, axis=1).max() <= 1
    assert np.ptp(dealt.sum(axis=0)) <= 1


@given(st.integers(1, 30), st.integers(1, 10), st.integers(1, 10), SEEDS)
def test_by_label_gives_few_classes_to_each_and_a_holder_to_every_class(
    clients: int, per_client: int, classes: int, seed: int
) -> None:
    assume(per_client <= classes <= clients * per_client)
    labels = np.repeat(np.arange(classes), 60).astype(np.int32)
    dealt = table(ByLabel(clients, per_client), labels, classes, seed)
    assert ((dealt > 0).sum(axis=0) == per_client).all()
    holders = (dealt > 0).sum(axis=1)
    assert holders.min() >= 1
    assert np.ptp(holders) <= 1
    for row in dealt:
        assert np.ptp(row[row > 0]) <= 1


RARE = {27: (8,), 28: (8, 9), 29: (9,)}


@pytest.mark.parametrize("reserved", [RARE, {str(client): list(held) for client, held in RARE.items()}])
def test_by_label_skewed_setting_of_the_paper(reserved: dict[int, tuple[int, ...]]) -> None:
    rule = ByLabel(clients=30, classes_per_client=2, reserved=reserved)
    labels = np.repeat(np.arange(10), 540).astype(np.int32)
    dealt = table(rule, labels, 10)
    for client in range(30):
        held = np.flatnonzero(dealt[:, client])
        assert held.tolist() == list(RARE[client]) if client in RARE else len(held) == 2 and held.max() <= 7
    assert dealt[8, [27, 28]].tolist() == [270, 270]
    assert dealt[9, [28, 29]].tolist() == [270, 270]
    assert rule == ByLabel(30, 2, RARE)
    assert json.loads(json.dumps(rule.as_dict()))["reserved"] == {"27": [8], "28": [8, 9], "29": [9]}


def test_by_label_draws_the_classes_by_lot() -> None:
    labels = np.repeat(np.arange(5), 10).astype(np.int32)
    draws = 2000
    first = sum(table(ByLabel(5, 1), labels, 5, seed)[:, 0] > 0 for seed in range(draws))
    assert stats.chisquare(first).pvalue > 1e-4


def test_rows_of_a_class_are_dealt_by_lot() -> None:
    labels, shares = np.zeros(4, np.int32), np.array([[0.5, 0.5]])
    draws = 3000
    pairs = [tuple(deal(labels, shares, np.random.default_rng(seed))) for seed in range(draws)]
    # Two of four rows go to each client: six ways, equally likely.
    found = np.unique(pairs, axis=0, return_counts=True)[1]
    assert len(found) == 6
    assert stats.chisquare(found).pvalue > 1e-4


@pytest.mark.parametrize("concentration", [0.3, 5.0])
def test_dirichlet_shares_have_the_moments_of_the_law(concentration: float) -> None:
    clients, classes = 4, 20_000
    counts = np.full(classes, 1000)
    shares = Dirichlet(clients, concentration, minimum_rows=1).shares(counts, np.random.default_rng(0))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    variance = (1 / clients) * (1 - 1 / clients) / (clients * concentration + 1)
    # The mean of 20,000 shares has standard error sqrt(variance / 20,000); five of them for four means and one fit.
    assert np.abs(shares.mean(axis=0) - 1 / clients).max() < 5 * np.sqrt(variance / classes)
    np.testing.assert_allclose(shares.var(axis=0), variance, rtol=0.05)


@given(st.floats(0.05, 50.0), st.integers(1, 5), st.integers(1, 15), SEEDS)
def test_dirichlet_keeps_its_minimum(concentration: float, clients: int, minimum: int, seed: int) -> None:
    labels = np.repeat(np.arange(CLASSES), 100).astype(np.int32)
    try:
        dealt = table(Dirichlet(clients, concentration, minimum), labels, CLASSES, seed)
    except InvalidInput:
        # Only a law that hardly ever meets the minimum may be given up.
        assert concentration < 0.3
    else:
        assert dealt.sum(axis=0).min() >= minimum


def test_dirichlet_says_when_its_minimum_cannot_be_met() -> None:
    with pytest.raises(InvalidInput, match=r"minimum_rows: received 10; allowed: a whole number from 1 to 5 \(20 rows"):
        Dirichlet(4, 1.0).shares(np.array([10, 10]), np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="minimum_rows: received 5; allowed: few enough"):
        Dirichlet(4, 1e-3, minimum_rows=5).shares(np.array([10, 10]), np.random.default_rng(0))


def test_imbalanced_gives_the_published_split_of_four() -> None:
    labels = np.repeat(np.arange(4), 100).astype(np.int32)
    assert table(Imbalanced(4), labels, 4).tolist() == [[40, 30, 20, 10]] * 4
    rotated = [[(40, 30, 20, 10)[(g + c) % 4] for g in range(4)] for c in range(4)]
    assert table(Imbalanced(4, rotate=True), labels, 4).tolist() == rotated
    assert table(Imbalanced(2, sizes=(3, 1)), labels, 4).tolist() == [[75, 25]] * 4


def test_dominant_part_of_a_client_is_its_share() -> None:
    labels = np.repeat(np.arange(4), 420).astype(np.int32)
    dealt = table(Dominant(8, 0.7), labels, 4)
    part = dealt / dealt.sum(axis=0)
    for client in range(8):
        assert part[client % 4, client] == pytest.approx(0.7, abs=0.01)


def test_a_class_without_a_home_goes_to_all() -> None:
    labels = np.repeat(np.arange(3), 100).astype(np.int32)
    assert table(Dominant(2, 0.9), labels, 3).tolist() == [[90, 10], [10, 90], [50, 50]]
    assert table(Dominant(1, 0.9), labels, 3).tolist() == [[100]] * 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Iid(0), "clients: received 0; allowed: a whole number, 1 or more"),
        (lambda: Iid(2.0), "clients: received 2.0"),
        (lambda: ByLabel(3, 0), "classes_per_client: received 0"),
        (lambda: ByLabel(3, 2, {3: (1,)}), "reserved client: received 3; allowed: a whole number from 0 to 2"),
        (lambda: ByLabel(3, 2, {"x": (1,)}), "reserved client: received 'x'"),
        (lambda: ByLabel(3, 2, {0: (1,), "0": (2,)}), r"reserved.0: received .*each client once"),
        (lambda: ByLabel(3, 2, {0: (1, 1)}), r"reserved.0: received \(1, 1\); allowed: 1 to 2 different"),
        (lambda: ByLabel(3, 2, {0: (1, 2, 3)}), r"reserved.0: received \(1, 2, 3\)"),
        (lambda: ByLabel(3, 2, {0: ()}), r"reserved.0: received \(\)"),
        (lambda: ByLabel(3, 2, {0: 1}), "reserved.0: received 1"),
        (lambda: ByLabel(3, 2, [(0, (1,))]), r"reserved: received .*a table of clients"),
        (lambda: Dirichlet(3, 0.0), r"concentration: received 0.0; allowed: a number in \(0, inf\)"),
        (lambda: Dirichlet(3, 1.0, 0), "minimum_rows: received 0"),
        (lambda: Dominant(3, 1.1), r"share: received 1.1; allowed: a number in \(0, 1\]"),
        (lambda: Imbalanced(3, (1.0, 2.0)), r"sizes: received \(1.0, 2.0\); allowed: 3 numbers"),
        (lambda: Imbalanced(2, (1.0, -2.0)), r"sizes\[1\]: received -2.0"),
        (lambda: Imbalanced(2, rotate=1), "rotate: received 1; allowed: true or false"),
    ],
)
def test_arguments_are_checked_at_once(make, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidInput, match=f"^{message}"):
        make()


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (ByLabel(30, 12), r"classes_per_client: .*12; .*from 1 to 10 \(the source has 10 classes\)"),
        (ByLabel(3, 2), r"classes_per_client: .*2; .*\(3 clients with 2 each cannot hold 10 classes\)"),
        (ByLabel(3, 2, {0: (10,)}), r"reserved: received 10; allowed: class indices from 0 to 9"),
        (ByLabel(2, 10, {0: range(10)}), "reserved: .*at least one class left for the clients not listed"),
    ],
)
def test_by_label_is_checked_against_the_source(rule: ByLabel, message: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{message}"):
        rule.shares(np.full(10, 100), np.random.default_rng(0))

"""The paper's protocols as splits: who holds what, which labels are wrong, what is held out."""

import numpy as np
import pytest

import fedhedge as fh
from fedhedge.experiments.tables_data import CLIENTS, OFFSET, TABLES, problem


def rows_of(split):
    return split.clients.rows("train")


@pytest.mark.parametrize("name", TABLES)
def test_test_rows_are_three_in_ten_of_each_class_and_the_rest_is_dealt(name):
    everything = fh.data.load(name)
    whole = problem(name, 3, folds=3).whole
    counts = np.bincount(everything.labels)
    np.testing.assert_array_equal(np.bincount(whole.labels), np.round(0.3 * counts))
    assert len(whole.labels) + len(rows_of(whole)[1]) == len(everything)
    assert len(whole.clients) == CLIENTS


def test_shares_turn_round_with_the_class():
    """Without wrong labels, class c of Iris (35 rows for training) gives client g (.4, .3, .2, .1)[(g + c) mod 4]."""
    clients = problem("iris", 0, folds=3, flipped=0.0).whole.clients
    counts = clients.label_counts().to_numpy()
    shares = np.array([[(0.4, 0.3, 0.2, 0.1)[(g + c) % 4] for c in range(3)] for g in range(4)])
    assert np.abs(counts - 35 * shares).max() < 1


def test_a_tenth_of_each_client_s_labels_is_wrong_and_no_test_label_is():
    right, wrong = (problem("seeds", 5, folds=3, flipped=share).whole for share in (0.0, 0.1))
    np.testing.assert_array_equal(right.labels, wrong.labels)
    for client in range(CLIENTS):
        (X, y), (other, labels) = (split.clients.rows("train", client) for split in (right, wrong))
        # Rows are sorted by label, so that each row finds itself by its features.
        order, again = (np.lexsort(table.T) for table in (X, other))
        np.testing.assert_array_equal(X[order], other[again])
        assert (y[order] != labels[again]).sum() == round(0.1 * len(y))


@pytest.mark.parametrize(("name", "scaling"), [("wine", "unit"), ("wine", "centred"), ("pump", "standard")])
def test_rows_lie_in_the_unit_ball(name, scaling):
    whole = problem(name, 1, folds=2, scaling=scaling).whole
    for X in (rows_of(whole)[0], whole.features):
        lengths = np.linalg.norm(X, axis=1)
        assert lengths.max() <= 1 + 1e-12
        assert lengths.min() > 0


def test_centred_features_are_twice_the_unit_ones_less_one_before_they_are_shortened():
    unit, centred = (problem("iris", 1, folds=2, scaling=kind).whole.features for kind in ("unit", "centred"))
    # Directions survive the shortening; short rows survive as they are.
    short = np.linalg.norm(centred, axis=1) < 1 - 1e-9
    assert short.any()
    inner = np.linalg.norm(unit, axis=1) < 1 - 1e-9
    both = short & inner
    np.testing.assert_allclose(centred[both], 2 * unit[both] - 1, atol=1e-12)


def test_folds_hold_out_every_row_and_nothing_of_the_test_rows():
    whole, folds = problem("wine", 2, folds=3)
    X, _ = rows_of(whole)
    keys = {row.tobytes() for row in X}
    assert keys == {row.tobytes() for fold in folds for row in fold.features}
    assert not keys & {row.tobytes() for row in whole.features}
    sizes = set()
    for fold in folds:
        kept = rows_of(fold)[0]
        sizes.add((len(kept), len(fold.labels)))
        assert len(kept) + len(fold.labels) == len(X)
        assert not {row.tobytes() for row in kept} & {row.tobytes() for row in fold.features}
    assert len(sizes) == 1


def test_five_features_of_the_pump_s_test_rows_are_too_high():
    """Against the same rows before the shift: half a standard deviation in five features, before shortening."""
    whole = problem("pump", 0, folds=2, scaling="standard").whole
    # Means of the shortened training and test rows agree but for the five.
    apart = whole.features.mean(axis=0) - rows_of(whole)[0].mean(axis=0)
    moved = np.sort(np.abs(apart))
    assert OFFSET == 0.5
    assert (moved[-5:] > 2 * moved[:-5].max()).all()


def test_seeds_give_other_splits_of_the_same_shape():
    first, second = (problem("penguins", seed, folds=3).whole for seed in (0, 1))
    assert not np.array_equal(first.features, second.features)
    np.testing.assert_array_equal(first.clients.counts("train"), second.clients.counts("train"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "irises"}, "table: received 'irises'.*did you mean iris"),
        ({"name": "iris", "scaling": "none"}, "scaling: received 'none'"),
        ({"name": "iris", "folds": 1}, "folds: received 1"),
        ({"name": "iris", "flipped": 1.0}, r"flipped: received 1\.0"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(fh.InvalidInput, match=message):
        problem(**{"seed": 0, "folds": 3} | arguments)

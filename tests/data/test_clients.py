"""The table of clients against brute force."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedhedge import InvalidInput
from fedhedge.data import Clients, Scaling
from fedhedge.data.splits import NAMES

ROWS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 2), st.floats(-9, 9)), min_size=1, max_size=40
)


def some(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), rng.integers(0, 3, n), rng.choice(["x", "y", "z"], n)


@given(ROWS)
def test_rows_are_slices_in_a_stable_order(rows: list[tuple[int, int, int, float]]) -> None:
    # One more training row each, so that all five clients exist and can train.
    rows = rows + [(i, 0, 0, 0.0) for i in range(5)]
    client, split, label, value = (np.array(column) for column in zip(*rows, strict=True))
    clients = Clients(value[:, None], label, client, split)
    for number, name in enumerate(NAMES):
        X, y = clients.rows(name)
        offsets = clients.offsets(name)
        assert offsets.tolist() == [0, *np.cumsum(clients.counts(name))]
        for i in range(5):
            expected = [row for row in rows if row[0] == i and row[1] == number]
            assert clients.counts(name)[i] == len(expected)
            assert X[offsets[i] : offsets[i + 1], 0].tolist() == [row[3] for row in expected]
            assert y[offsets[i] : offsets[i + 1]].tolist() == [row[2] for row in expected]
            own_X, own_y = clients.rows(name, i)
            assert own_X[:, 0].tolist() == [row[3] for row in expected]
            assert own_y.tolist() == [row[2] for row in expected]


def test_nothing_can_be_changed() -> None:
    X, y, groups = some()
    view = X.view()
    view.setflags(write=False)
    clients = Clients.from_arrays(view, y, np.sort(groups), validation=0, test=0)
    before = clients.digest()
    with pytest.raises(ValueError, match="read-only"):
        clients.rows("train")[0][0, 0] = 1.0
    with pytest.raises(AttributeError):
        clients.features = X  # type: ignore[misc]
    X[:] = 0.0
    y[:] = 0
    assert clients.digest() == before


def test_from_arrays_makes_one_client_of_each_group() -> None:
    X, y, groups = some()
    clients = Clients.from_arrays(pd.DataFrame(X, columns=["a", "b", "c"]), np.array(["u", "v", "w"])[y], groups)
    assert len(clients) == 3
    assert clients.names == ("x", "y", "z")
    assert clients.classes == ("u", "v", "w")
    assert clients.feature_names == ("a", "b", "c")
    for i, name in enumerate(clients.names):
        found = np.concatenate([clients.rows(split, i)[0] for split in NAMES])
        assert sorted(found.tolist()) == sorted(X[groups == name].tolist())
        n = (groups == name).sum()
        assert clients.counts("test")[i] == round(0.2 * n)
        assert clients.counts("validation")[i] == round(0.1 * n)


def test_the_order_of_clients_in_the_input_does_not_matter() -> None:
    X, y, groups = some()
    blocks = np.concatenate([np.flatnonzero(groups == name) for name in ("z", "x", "y")])
    one = Clients.from_arrays(X, y, groups, seed=3)
    other = Clients.from_arrays(X[blocks], y[blocks], groups[blocks], seed=3)
    assert one.digest() == other.digest()
    assert one.digest() != Clients.from_arrays(X, y, groups, seed=4).digest()


def test_training_rows_alone_are_enough() -> None:
    X, y, groups = some()
    clients = Clients.from_arrays(X, y, groups, validation=0, test=0)
    assert clients.counts("train").sum() == 60
    assert clients.rows("test")[0].shape == (0, 3)
    assert clients.offsets("validation").tolist() == [0, 0, 0, 0]


def test_from_splits_keeps_the_splits_given() -> None:
    X, y, groups = some()
    parts = [slice(0, 40), slice(40, 50), slice(50, 60)]
    clients = Clients.from_splits(*[(X[part], y[part], groups[part]) for part in parts])
    for split, part in zip(NAMES, parts, strict=True):
        assert sorted(clients.rows(split)[0].tolist()) == sorted(X[part].tolist())
    assert Clients.from_splits((X, y, groups)).counts("train").sum() == 60


def test_regression_targets_stay_real() -> None:
    X, _, groups = some()
    clients = Clients.from_arrays(X, X[:, 0], groups)
    assert clients.classes == ()
    assert clients.labels.dtype == np.float64
    assert clients.label_counts().shape == (3, 0)
    assert "regression" in repr(clients)


def test_label_counts_and_summary_equal_pandas() -> None:
    X, y, groups = some(200)
    clients = Clients.from_arrays(X, y, groups)
    for split in NAMES:
        labels, owner = clients.rows(split)[1], np.repeat(clients.names, clients.counts(split))
        expected = pd.crosstab(owner, labels)
        np.testing.assert_array_equal(clients.label_counts(split), expected)
    summary = clients.summary()
    assert summary.columns.tolist() == ["client", "name", "train", "validation", "test", "classes"]
    assert summary[list(NAMES)].to_numpy().sum() == 200
    lone = Clients.from_arrays(X, y, np.where(y == 0, "p", "q")).summary()
    assert lone["classes"].tolist() == ["0", "1, 2"]


def test_the_digest_sees_content_and_not_provenance() -> None:
    X, y, groups = some()
    one = Clients.from_splits((X, y, groups))
    assert one.digest() == Clients.from_splits((X, y, groups)).digest()
    changed = X.copy()
    changed[0, 0] = np.nextafter(changed[0, 0], 9.0)
    renamed = np.where(groups == "z", "zz", groups)
    assert len({one.digest(), *(Clients.from_splits(s).digest() for s in [(changed, y, groups), (X, y, renamed)])}) == 3
    described = Clients(one.features, one.labels, one.client, one.split, one.names, one.classes, description={"a": 1})
    assert described.digest() == one.digest()


def test_standardized_uses_the_training_rows_only() -> None:
    X, y, groups = some(200)
    X = X * [1.0, 100.0, 0.0] + [5.0, 0.0, 2.0]
    clients = Clients.from_arrays(X, y, groups)
    scaled = clients.standardized()
    train = scaled.rows("train")[0]
    np.testing.assert_allclose(train[:, :2].mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(train[:, :2].std(axis=0), 1.0, atol=1e-12)
    assert (train[:, 2] == 2.0).all()
    recorded = json.loads(json.dumps(scaled.description))["scaling"]
    assert recorded["kind"] == "standard"
    np.testing.assert_allclose(Scaling.from_dict(recorded)(clients.features), scaled.features, atol=1e-12)


def test_float32_is_kept_and_bytes_become_floats() -> None:
    _, y, groups = some()
    for given_type, kept in [(np.float32, np.float32), (np.uint8, np.float32), (np.int64, np.float64)]:
        clients = Clients.from_arrays(np.ones((60, 2, 2, 1), given_type), y, groups)
        assert clients.features.dtype == kept
        assert clients.rows("train", 0)[0].shape[1:] == (2, 2, 1)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_feature_that_is_not_finite_is_named(value: float) -> None:
    X, y, groups = some()
    frame = pd.DataFrame(X, columns=["speed", "flow", "heat"])
    frame.loc[int(np.flatnonzero(groups == "y")[0]), "flow"] = value
    with pytest.raises(InvalidInput, match=f"client 'y', column flow: received {value}; allowed: finite numbers"):
        Clients.from_arrays(frame, y, groups)


def test_a_client_without_training_rows_is_named() -> None:
    X, y, _ = some(4)
    with pytest.raises(InvalidInput, match=r"training rows: received 0; .*client 'b' has none"):
        Clients(X, y, [0, 0, 1, 0], [0, 0, 2, 0], names=("a", "b"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": [0, 1]}, r"^labels: received 'shape \(2,\)'; allowed: shape \(4,\)"),
        ({"labels": [0, 1, 2, 1], "classes": ("a", "b")}, "^labels: received 2; allowed: whole numbers from 0 to 1"),
        ({"labels": [0.0, np.nan, 1.0, 2.0]}, "^labels: received nan"),
        ({"client": [0, 0, 3, 0], "names": ("a", "b")}, "^client: received 3"),
        ({"client": [0, 0, -1, 0]}, "^client: received -1"),
        ({"client": [0.0] * 4}, "^client: received 'float64'; allowed: whole numbers"),
        ({"split": [0, 0, 3, 0]}, "^split: received 3; allowed: whole numbers from 0 to 2"),
        ({"features": np.zeros((4, 0))}, "^features: received"),
        ({"features": np.zeros(4)}, "^features: received"),
        ({"features": np.array([["1"]] * 4)}, "^features: received 'values of type <U1'; allowed: numbers"),
        ({"feature_names": ("a",)}, "^feature_names: received 1; allowed: 3 names"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(changes: dict[str, object], message: str) -> None:
    content = {"features": np.zeros((4, 3)), "labels": [0, 1, 1, 0], "client": [0] * 4, "split": [0] * 4}
    with pytest.raises(InvalidInput, match=message):
        Clients(**{**content, **changes})  # type: ignore[arg-type]


def test_text_columns_are_named() -> None:
    with pytest.raises(InvalidInput, match="columns that are not numbers: 'b'"):
        Clients.from_arrays(pd.DataFrame({"a": [1.0, 2.0], "b": ["u", "v"]}), [0, 1], [0, 0])


def test_splits_and_clients_are_checked_by_name() -> None:
    clients = Clients.from_arrays(*some())
    with pytest.raises(InvalidInput, match=r"split: received 'tests'; .*did you mean test"):
        clients.rows("tests")
    with pytest.raises(InvalidInput, match="client: received 3; allowed: a whole number from 0 to 2"):
        clients.rows("train", 3)


def test_whole_numbers_are_targets_when_it_is_a_regression() -> None:
    X, y, groups = np.ones((6, 1)), np.array([3, 100, 7, 9, 3, 5]), [0, 0, 0, 1, 1, 1]
    clients = Clients.from_arrays(X, y, groups, validation=0, test=0, regression=True)
    assert clients.classes == ()
    assert sorted(clients.labels.tolist()) == [3.0, 3.0, 5.0, 7.0, 9.0, 100.0]
    assert Clients.from_arrays(X, y, groups, validation=0, test=0).classes == (3, 5, 7, 9, 100)
    with pytest.raises(InvalidInput, match="labels"):
        Clients.from_arrays(X, list("abcabc"), groups, regression=True)


def test_columns_must_agree_between_splits() -> None:
    train = pd.DataFrame(np.ones((4, 2)), columns=["a", "b"])
    part = (np.array([0, 1, 0, 1]), [0, 0, 1, 1])
    with pytest.raises(InvalidInput, match=r"features: received \['b', 'a'\]; allowed: the columns \['a', 'b'\]"):
        Clients.from_splits((train, *part), None, (train[["b", "a"]], *part))

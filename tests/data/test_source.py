"""Dealing a data set to clients."""

import json

import numpy as np
import pytest

from fedhedge import InvalidInput
from fedhedge.data import ByLabel, Dataset, Dirichlet, Dominant, Iid, Scaling
from fedhedge.data.splits import NAMES


def images(official: bool = True) -> Dataset:
    """Five classes of 2 x 2 x 1 images, 40 + 10 each, no two alike."""
    number = np.arange(250)
    pixels = np.stack([number, 255 - number, number % 7, number % 11], axis=1).astype(np.uint8)
    return Dataset(
        name="tiny",
        features=pixels.reshape(-1, 2, 2, 1),
        labels=number % 5,
        classes=("a", "b", "c", "d", "e"),
        test=number >= 200 if official else None,
        scaling=Scaling.pixels((0.5,), (0.25,)),
        bounds=(0.0, 255.0),
    )


def first_pixels(X: np.ndarray) -> list[int]:
    return sorted(np.round(X[:, 0, 0, 0]).astype(int).tolist())


def test_official_test_rows_are_dealt_like_the_rest() -> None:
    clients = images().partition(ByLabel(5, 2), scaling="none")
    train, test = clients.label_counts("train") + clients.label_counts("validation"), clients.label_counts("test")
    np.testing.assert_array_equal(train, 4 * test)
    assert first_pixels(clients.rows("test")[0]) == list(range(200, 250))
    both = np.concatenate([clients.rows("train")[0], clients.rows("validation")[0]])
    assert first_pixels(both) == list(range(200))
    assert clients.counts("validation").sum() == 20


def test_rows_keep_their_labels() -> None:
    clients = images().partition(Dirichlet(4, 1.0), scaling="none", seed=2)
    for split in NAMES:
        X, y = clients.rows(split)
        np.testing.assert_array_equal(X[:, 0, 0, 0].astype(int) % 5, y)


def test_without_an_official_test_every_client_holds_some_out() -> None:
    clients = images(official=False).partition(Iid(5), validation=0.2, test=0.4)
    assert clients.counts("train").tolist() == [20] * 5
    assert clients.counts("validation").tolist() == [10] * 5
    assert (clients.label_counts("test") == 4).all(axis=None)
    none = images(official=False).partition(Iid(5), validation=0, test=0)
    assert none.counts("train").tolist() == [50] * 5


def test_a_seed_decides_everything() -> None:
    rule = Dirichlet(4, 1.0)
    assert images().partition(rule, seed=1).digest() == images().partition(rule, seed=1).digest()
    assert images().partition(rule, seed=1).digest() != images().partition(rule, seed=2).digest()


def test_scalings() -> None:
    raw = images().partition(Iid(5), scaling="none").features
    scaled = {kind: images().partition(Iid(5), scaling=kind) for kind in ("default", "unit", "standard")}
    np.testing.assert_allclose(scaled["default"].features, (raw / 255 - 0.5) / 0.25, atol=1e-5)
    np.testing.assert_allclose(scaled["unit"].features, raw / 255, atol=1e-6)
    train = scaled["standard"].rows("train")[0]
    np.testing.assert_allclose(train.mean(axis=0), 0.0, atol=1e-5)
    np.testing.assert_allclose(train.std(axis=0), 1.0, atol=1e-5)
    for clients in scaled.values():
        assert clients.features.dtype == np.float32
        recorded = Scaling.from_dict(clients.description["scaling"])
        np.testing.assert_allclose(recorded(raw), clients.features, atol=1e-4)


def test_a_table_is_standardised_by_default_and_brought_to_its_range_by_unit() -> None:
    X = np.random.default_rng(0).normal(5.0, 3.0, (100, 2))
    table = Dataset("table", X, np.arange(100) % 2)
    standard, unit = table.partition(Iid(2)), table.partition(Iid(2), scaling="unit")
    np.testing.assert_allclose(standard.rows("train")[0].std(axis=0), 1.0)
    np.testing.assert_allclose(np.ptp(unit.rows("train")[0], axis=0), 1.0)
    assert standard.features.dtype == np.float64


def test_the_description_says_where_the_rows_come_from() -> None:
    described = json.loads(json.dumps(images().partition(ByLabel(5, 2), seed=7).description))
    assert described["source"] == "tiny"
    assert described["partition"] == {"kind": "ByLabel", "clients": 5, "classes_per_client": 2, "reserved": {}}
    assert described["splits"] == {"validation": 0.1, "test": "official", "seed": 7}
    assert described["scaling"]["kind"] == "published"


def test_a_client_without_rows_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"clients: received 300; .*client \d+ gets none of the 200 rows"):
        images().partition(Iid(300))
    with pytest.raises(InvalidInput, match=r"clients: received 7; .*client 6 gets none of the 20 rows"):
        Dataset("few", np.zeros((20, 1)), np.arange(20) % 6, classes=tuple(range(7))).partition(Dominant(7, 1.0))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scaling": "minmax"}, "scaling: received 'minmax'; allowed: default, standard, unit, none"),
        ({"seed": -1}, "seed: received -1"),
        ({"validation": 2}, "validation: received 2"),
        ({"partitioner": "iid"}, "partitioner: received 'iid'; allowed: a partitioner such as"),
    ],
)
def test_arguments_are_checked(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{message}"):
        images().partition(**{"partitioner": Iid(2), **changes})  # type: ignore[arg-type]


def test_a_data_set_needs_class_labels_that_fit() -> None:
    with pytest.raises(InvalidInput, match=r"labels: received 'real targets'; .*Clients.from_arrays"):
        Dataset("bad", np.zeros((2, 1)), np.array([0.5, 1.0]))
    with pytest.raises(InvalidInput, match="labels: received 3"):
        Dataset("bad", np.zeros((2, 1)), np.array([0, 3]), classes=("a", "b"))
    with pytest.raises(InvalidInput, match="test: received"):
        Dataset("bad", np.zeros((2, 1)), np.array([0, 1]), test=np.array([True]))

"""Labels of any kind to class indices."""

import numpy as np
import pandas as pd
import pytest

from fedhedge import InvalidInput
from fedhedge.data.labels import encode


@pytest.mark.parametrize(
    ("labels", "index", "classes"),
    [
        ([7, 3, 7], [1, 0, 1], (3, 7)),
        (["b", "a", "b"], [1, 0, 1], ("a", "b")),
        ([2.0, 1.0], [1, 0], (1, 2)),
        ([True, False], [1, 0], (False, True)),
        (pd.Series(["no", "yes"], dtype="category"), [0, 1], ("no", "yes")),
        (pd.Series([5, 4], dtype="Int64"), [1, 0], (4, 5)),
        (np.array([1, 2, 1], object), [0, 1, 0], (1, 2)),
    ],
)
def test_classes_are_sorted_and_plain(labels: object, index: list[int], classes: tuple[object, ...]) -> None:
    encoded, found = encode(labels)
    assert encoded.dtype == np.int32
    assert encoded.tolist() == index
    assert found == classes
    assert [type(label) for label in found] == [type(label) for label in classes]


def test_real_numbers_are_regression_targets() -> None:
    encoded, classes = encode([0.5, 1.0, 2.0])
    assert classes == ()
    assert encoded.tolist() == [0.5, 1.0, 2.0]


@pytest.mark.parametrize("labels", [["a", None], [1.0, float("nan")], pd.Series([1, pd.NA], dtype="Int64"), [1, "a"]])
def test_gaps_and_mixtures_are_refused(labels: object) -> None:
    values = np.array(labels, object) if isinstance(labels, list) else labels
    with pytest.raises(InvalidInput, match="labels: received"):
        encode(values)


def test_other_objects_are_refused() -> None:
    with pytest.raises(InvalidInput, match="allowed: text"):
        encode(np.array(["2020-01-01"], "datetime64[D]"))

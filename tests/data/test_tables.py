"""The small tables against published counts and means."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedhedge.data import load


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("iris", {"setosa": 50, "versicolor": 50, "virginica": 50}),
        ("wine", {"class_0": 59, "class_1": 71, "class_2": 48}),
        ("penguins", {"Adelie": 151, "Chinstrap": 68, "Gentoo": 123}),
        ("seeds", {"Kama": 70, "Rosa": 70, "Canadian": 70}),
        # KEEL's copy, which leaves the same eight cases out.
        (
            "dermatology",
            {
                "psoriasis": 111,
                "seborrheic dermatitis": 60,
                "lichen planus": 71,
                "pityriasis rosea": 48,
                "chronic dermatitis": 48,
                "pityriasis rubra pilaris": 20,
            },
        ),
    ],
)
def test_class_counts(name: str, counts: dict[str, int]) -> None:
    dataset = load(name)
    assert dict(zip(dataset.classes or (), np.bincount(dataset.labels).tolist(), strict=True)) == counts
    assert len(dataset.feature_names) == dataset.features.shape[1]


@pytest.mark.parametrize(
    ("name", "column", "mean"),
    [
        # Published summaries: Fisher's iris, palmerpenguins' and UCI's descriptions.
        ("iris", 0, 5.843),
        ("iris", 1, 3.057),
        ("wine", 0, 13.0),
        ("penguins", 0, 43.92),
        ("penguins", 2, 200.9),
        ("penguins", 3, 4202.0),
        ("seeds", 0, 14.85),
    ],
)
def test_column_means(name: str, column: int, mean: float) -> None:
    assert load(name).features[:, column].mean() == pytest.approx(mean, rel=5e-4)


def test_digits_are_images_of_sixteen_levels() -> None:
    digits = load("digits")
    # Counts of the ten digits as UCI gives them for the test part of the set.
    assert np.bincount(digits.labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert digits.features.max() == 16
    assert digits.features.shape[1:] == (8, 8, 1)


@pytest.mark.data
@pytest.mark.parametrize("name", ["iris", "wine", "penguins", "dermatology", "seeds"])
def test_tables_equal_the_published_files(real_data: Path, name: str) -> None:
    table = pd.read_csv(real_data / "uci" / f"{name}.csv", na_values="?")
    if name == "penguins":
        table = table.drop(columns=["island", "sex", "year"]).dropna()
        table = table.rename(columns={"species": "class"})[[*table.columns[1:], "class"]]
    table = table.dropna()
    dataset = load(name)
    np.testing.assert_array_equal(dataset.features, table.drop(columns="class").to_numpy(float))
    pairs = set(zip(dataset.labels.tolist(), table["class"].tolist(), strict=True))
    assert len(pairs) == dataset.number_of_classes

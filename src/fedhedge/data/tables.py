"""Small tables: two from scikit-learn, three that come with this package."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pandas as pd

from fedhedge.data.source import Dataset

DERMATOLOGY_CLASSES = (
    "psoriasis",
    "seborrheic dermatitis",
    "lichen planus",
    "pityriasis rosea",
    "chronic dermatitis",
    "pityriasis rubra pilaris",
)
SEEDS_CLASSES = ("Kama", "Rosa", "Canadian")
PENGUINS_CLASSES = ("Adelie", "Chinstrap", "Gentoo")
_PENGUINS_FEATURES = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]


def load_iris() -> Dataset:
    """Fisher's irises, 150 x 4, three species of 50; scikit-learn's copy, which has Fisher's values."""
    from sklearn import datasets

    return _from_sklearn("iris", datasets.load_iris())


def load_wine() -> Dataset:
    """Wines of three growers, 178 x 13, classes of 59, 71 and 48; scikit-learn's copy."""
    from sklearn import datasets

    return _from_sklearn("wine", datasets.load_wine())


def load_penguins() -> Dataset:
    """Palmer penguins, the 342 with all four measurements: 151 Adelie, 68 Chinstrap, 123 Gentoo."""
    table = _read("penguins.csv").dropna(subset=_PENGUINS_FEATURES)
    species = table["species"].map(PENGUINS_CLASSES.index)
    return _from_table("penguins", table[_PENGUINS_FEATURES], species, PENGUINS_CLASSES)


def load_dermatology() -> Dataset:
    """Skin diseases, the 358 complete cases of 366 x 34; the 8 cases of unknown age are left out."""
    table = _read("dermatology.csv", na_values="?").dropna()
    return _from_table("dermatology", table.drop(columns="class"), table["class"] - 1, DERMATOLOGY_CLASSES)


def load_seeds() -> Dataset:
    """Wheat kernels, 210 x 7, three varieties of 70."""
    table = _read("seeds.csv")
    return _from_table("seeds", table.drop(columns="class"), table["class"] - 1, SEEDS_CLASSES)


def _read(name: str, **options: Any) -> pd.DataFrame:
    with (files("fedhedge.data") / "files" / name).open(encoding="utf-8") as stream:
        table: pd.DataFrame = pd.read_csv(stream, **options)
    return table


def _from_table(name: str, features: pd.DataFrame, labels: pd.Series, classes: tuple[str, ...]) -> Dataset:
    return Dataset(
        name=name,
        features=features.to_numpy(float),
        labels=labels.to_numpy(int),
        classes=classes,
        feature_names=tuple(features.columns),
    )


def _from_sklearn(name: str, bunch: Any) -> Dataset:
    return Dataset(
        name=name,
        features=bunch.data,
        labels=bunch.target,
        classes=tuple(map(str, bunch.target_names)),
        feature_names=tuple(bunch.feature_names),
    )

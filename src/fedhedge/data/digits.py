"""The handwritten digits that come with scikit-learn."""

from __future__ import annotations

import numpy as np

from fedhedge.data.scaling import Scaling
from fedhedge.data.source import Dataset


def load_digits() -> Dataset:
    """1797 images of 8 x 8 x 1, values 0 to 16, scaled by 1/16 (Alpaydin and Kaynak, the test part of UCI's set)."""
    from sklearn import datasets

    table = datasets.load_digits()
    return Dataset(
        name="digits",
        features=table.images.astype(np.uint8)[..., None],
        labels=table.target,
        classes=tuple(range(10)),
        scaling=Scaling("published", np.zeros(()), np.array(16.0)),
        bounds=(0.0, 16.0),
    )

"""Five clusters in the plane."""

import numpy as np
import pytest
from scipy import stats

from fedhedge import InvalidInput
from fedhedge.data import Dominant, load


def test_each_cluster_has_its_law() -> None:
    dataset = load("clusters", rows=2000, radius=3.0, spread=0.5)
    for cluster in range(5):
        points = dataset.features[dataset.labels == cluster]
        center = 3.0 * np.array([np.cos(2 * np.pi * cluster / 5), np.sin(2 * np.pi * cluster / 5)])
        # Squared distances over spread^2 follow chi-squared with two degrees of freedom.
        squares = (((points - center) / 0.5) ** 2).sum(axis=1)
        assert stats.kstest(squares, stats.chi2(2).cdf).pvalue > 1e-4
        assert stats.kstest(points[:, 0], stats.norm(center[0], 0.5).cdf).pvalue > 1e-4


def test_each_cluster_can_be_a_client_of_its_own() -> None:
    clients = load("clusters").partition(Dominant(clients=5, share=1.0))
    counts = clients.label_counts("train").to_numpy()
    assert (counts == np.diag(np.diag(counts))).all()
    np.testing.assert_array_equal(np.unique(clients.features), np.unique(load("clusters").features))


def test_a_seed_decides_everything() -> None:
    np.testing.assert_array_equal(load("clusters", seed=1).features, load("clusters", seed=1).features)
    assert (load("clusters", seed=1).features != load("clusters", seed=2).features).any()


@pytest.mark.parametrize("option", [{"rows": 0}, {"radius": -1.0}, {"spread": 0}, {"seed": -1}])
def test_options_are_checked(option: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match=f"^{next(iter(option))}: received"):
        load("clusters", **option)

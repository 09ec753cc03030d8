"""Simulation noise: Gaussian, reproducible, and independent over releases, clients and rounds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from fedhedge import InvalidInput
from fedhedge.privacy import NoiseSource, SeededNoise

ALPHA = 1e-3  # of every test below; the seeds are fixed


def test_noise_is_gaussian_of_the_given_deviation() -> None:
    model, lambda_ = SeededNoise(7).draw(0, 0, [2.5, 0.1], [(40, 50), (2000,)])
    assert model.shape == (40, 50)
    assert kstest(model.ravel() / 2.5, "norm").pvalue > ALPHA
    assert kstest(lambda_ / 0.1, "norm").pvalue > ALPHA


def test_releases_clients_and_rounds_share_no_noise() -> None:
    source: NoiseSource = SeededNoise(7)
    draws = [source.draw(i, t, [1.0, 1.0], [(1000,), (1000,)]) for i in (0, 1) for t in (0, 1)]
    columns = np.array([release for draw in draws for release in draw])
    correlations = np.corrcoef(columns)[np.triu_indices(len(columns), 1)]
    # Each is N(0, 1/1000); 28 pairs at ALPHA in all, by Bonferroni: 4.1 deviations.
    assert np.abs(correlations).max() < 4.1 / np.sqrt(1000)


def test_noise_depends_on_seed_client_and_round_alone() -> None:
    wanted = SeededNoise(3).draw(5, 9, [1.0], [(4,)])[0]
    source = SeededNoise(3)
    source.draw(1, 9, [1.0], [(10,)])
    np.testing.assert_array_equal(source.draw(5, 9, [1.0], [(4,)])[0], wanted)
    assert not np.array_equal(SeededNoise(4).draw(5, 9, [1.0], [(4,)])[0], wanted)
    assert not source.secure


def test_bad_arguments() -> None:
    with pytest.raises(InvalidInput, match=r"seed: received -1"):
        SeededNoise(-1)
    with pytest.raises(InvalidInput, match=r"sigma: received -1.0"):
        SeededNoise(0).draw(0, 0, [-1.0], [(2,)])

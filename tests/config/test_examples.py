"""The configuration files of the folder examples."""

from pathlib import Path

import numpy as np
import pytest

from fedhedge import data
from fedhedge.algorithms import FedeRage
from fedhedge.config import load_config
from fedhedge.models import MLP

EXAMPLES = Path(__file__).parents[2] / "examples"


PAPER = ("fashion-skewed", "fashion-uniform", "mnist-skewed", "mnist-uniform")


@pytest.mark.parametrize("name", PAPER)
def test_examples_are_the_setting_of_the_paper(name):
    config = load_config(EXAMPLES / f"{name}.toml")
    skewed = name.endswith("skewed")
    reserved = {27: (8,), 28: (8, 9), 29: (9,)} if skewed else None
    assert config.partitioner == data.ByLabel(clients=30, classes_per_client=2, reserved=reserved)
    assert config.law.largest() == config.law.smallest() == 3
    rare = [0.0107, 0.0078, 0.0053] if skewed else [0.1] * 3
    common = 0.11023 if skewed else 0.1
    expected = [common] * 27 + rare
    np.testing.assert_allclose(config.law.inclusion_probabilities(), expected, atol=1e-5)
    assert config.algorithm == FedeRage()
    assert config.algorithm.step == pytest.approx(0.1 / 15.25)
    assert config.model == MLP(hidden=(200,))
    assert (config.options.rounds, config.options.evaluate_every) == (3000, 50)


def test_the_quick_example_needs_no_files():
    given = load_config(EXAMPLES / "digits-quick.toml").simulation()
    assert len(given["clients"]) == 30
    assert (given["clients"].label_counts().to_numpy() > 0).sum(axis=1).max() == 2


@pytest.mark.data
@pytest.mark.parametrize("name", ["fashion-skewed", "mnist-uniform"])
def test_examples_with_the_real_images(name, real_data):
    clients = load_config(EXAMPLES / f"{name}.toml").simulation()["clients"]
    held = clients.label_counts().to_numpy() > 0
    assert clients.features.shape == (70_000, 28, 28, 1)
    assert held.sum(axis=1).max() == 2
    if name.endswith("skewed"):
        assert [np.flatnonzero(row).tolist() for row in held[27:]] == [[8], [8, 9], [9]]
        assert not held[:27, 8:].any()

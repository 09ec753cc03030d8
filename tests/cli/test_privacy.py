"""The privacy plan on the command line, and the example that shows one."""

import re
from pathlib import Path

import numpy as np
import pytest

import fedhedge as fh
from fedhedge.cli import main
from fedhedge.config.classifier import load_classifier

EXAMPLE = Path(__file__).parents[2] / "examples" / "dro-sites.toml"
pytestmark = pytest.mark.usefixtures("no_cache")


def test_privacy_plan_prints_the_plan(capsys, complaint):
    text = "privacy plan --epsilon 3 --delta 1e-6 --rounds 50 --samples 30 --features 14 --classes 4"
    assert main(text.split()) == 0
    assert capsys.readouterr().out == f"{fh.privacy.plan(3.0, 1e-6, 50, 30, features=14, classes=4)}\n"
    assert main([*text.split(), "--epsilon", "0"]) == 2
    assert "epsilon: received 0.0" in complaint()
    assert main([*text.split(), "--delta", "0.1"]) == 2
    assert "1/n" in complaint()


def test_example_covers_the_pumps_features_and_rows():
    classifier = load_classifier(EXAMPLE)
    pump = fh.data.load("pump", runs=128)
    assert tuple(classifier.feature_bounds) == pump.feature_names
    low, high = np.array(list(classifier.feature_bounds.values())).T
    assert ((low < pump.features) & (pump.features < high)).all()
    assert sorted(classifier.classes) == sorted(pump.classes)


def test_the_plan_that_the_example_shows_is_the_noise_that_fit_adds(capsys):
    text = EXAMPLE.read_text().replace("\\\n#", "")
    (command,) = re.findall(r"#   fedhedge (privacy plan .*)", text)
    assert main(command.split()) == 0
    algorithm = load_classifier(EXAMPLE).algorithm()
    expected = f"{algorithm.noise:.4g} times the sensitivity of the 4 x 14 model, and on lambda"
    assert f"{expected} {algorithm.lambda_noise:.4g} times" in capsys.readouterr().out

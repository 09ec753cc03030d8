"""The pump as a data source: what is drawn, that it can be repeated, and that its faults can be told apart."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from fedhedge import InvalidInput
from fedhedge.data import Dataset, load
from fedhedge.data.pump import DEFAULT_FEATURES, FEATURES, Plant, draw_runs, load_pump, runs, simulate

NOMINAL = Plant()


@pytest.fixture(scope="module")
def pump() -> Dataset:
    return load_pump(512)


def accuracy(features: np.ndarray, labels: np.ndarray) -> float:
    """Of a standardised linear SVM, 5-fold."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    return float(
        cross_val_score(make_pipeline(StandardScaler(), SVC(kernel="linear")), features, labels, cv=folds).mean()
    )


def test_the_data_set(pump: Dataset) -> None:
    assert pump.features.shape == (512, 13)
    assert pump.features.dtype == np.float64
    assert np.isfinite(pump.features).all()
    assert pump.feature_names == DEFAULT_FEATURES
    assert pump.classes == ("healthy", "seal leak", "blocked inlet", "bearing friction")
    assert np.bincount(pump.labels).tolist() == [128] * 4
    assert pump.description == {
        "severity": [0.0, 1.0],
        "seed": 0,
        "spread": 1.0,
        "leak_area": 3.6e-6,
        "site": {"load": 0.0, "speed": 0.0, "viscosity": 0.0, "valves": 0.0},
    }


def test_a_run_is_the_same_whatever_is_asked_for(pump: Dataset) -> None:
    few = load("pump", runs=7)
    np.testing.assert_array_equal(few.features, pump.features[:7])
    np.testing.assert_array_equal(few.labels, pump.labels[:7])
    other = load_pump(8, features=["pKurtosis", "qMean"])
    assert other.feature_names == ("pKurtosis", "qMean")
    np.testing.assert_array_equal(other.features[:, 1], pump.features[:8, 0])
    assert not np.isclose(load_pump(4, seed=1).features, pump.features[:4]).all(axis=1).any()


def test_a_run_does_not_depend_on_the_size_of_blocks(pump: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "BLOCK", 5)
    np.testing.assert_allclose(load_pump(12).features, pump.features[:12], rtol=1e-9)


def test_runs_are_drawn_one_by_one() -> None:
    drawn, part = draw_runs(60), draw_runs(20, first=30)
    for all_runs, some in zip(
        [*drawn[:3], *drawn.plant, drawn.noise], [*part[:3], *part.plant, part.noise], strict=True
    ):
        np.testing.assert_array_equal(np.asarray(all_runs)[30:50], some)
    assert drawn.noise.shape == (60, 1200)


def test_faults_change_their_own_constant_only() -> None:
    drawn = draw_runs(400, spread=0.0)
    label, severity, plant = drawn.label, drawn.severity, drawn.plant
    np.testing.assert_array_equal(label, np.arange(400) % 4)
    assert (severity[label == 0] == 0).all()
    for value, nominal in zip(plant[:4], NOMINAL[:4], strict=True):
        np.testing.assert_array_equal(value, np.full(400, nominal))
    np.testing.assert_allclose(plant.leak_area, np.where(label == 1, np.maximum(3.6e-6 * severity, 1e-9), 1e-9))
    np.testing.assert_allclose(plant.inlet_opening, np.where(label == 2, 0.8 - 0.27 * severity, 0.8))
    per_degree = np.where(label == 3, 1e-4 + 6e-4 * severity, 1e-4)
    np.testing.assert_allclose(plant.friction, per_degree * 180 / np.pi)


def test_laws_of_severity_angle_spread_and_noise() -> None:
    """Kolmogorov-Smirnov against each law; 0.001 each, on a fixed seed."""
    drawn = draw_runs(2000, severity=(0.25, 0.75), seed=3)
    faulty = drawn.severity[drawn.label > 0]
    assert scipy.stats.kstest(faulty, "uniform", (0.25, 0.5)).pvalue > 1e-3
    assert scipy.stats.kstest(drawn.angle, "uniform", (0, 2 * np.pi)).pvalue > 1e-3
    for value, nominal, sd in zip(drawn.plant[:4], NOMINAL[:4], [0.03, 0.01, 0.10, 0.02], strict=True):
        assert scipy.stats.kstest(value / nominal - 1.0, "norm", (0, sd)).pvalue > 1e-3
    assert scipy.stats.kstest(drawn.noise[:20].ravel(), "norm").pvalue > 1e-3
    together = np.stack([drawn.severity, drawn.angle, *drawn.plant[:4], drawn.noise[:, 0]])[:, drawn.label > 0]
    off_diagonal = np.corrcoef(together)[np.triu_indices(7, 1)]
    # 21 correlations of 1500 pairs: 4.5 standard errors.
    assert np.abs(off_diagonal).max() < 4.5 / np.sqrt(1500)


def test_spread_and_site_scale_and_shift() -> None:
    base, half = draw_runs(100).plant, draw_runs(100, spread=0.5).plant
    shifted = draw_runs(100, site={"viscosity": -0.2, "load": 0.1}).plant
    for full, less, moved, nominal, shift in zip(
        base[:4], half[:4], shifted[:4], NOMINAL[:4], [1.1, 1, 0.8, 1], strict=True
    ):
        np.testing.assert_allclose(less / nominal - 1.0, 0.5 * (full / nominal - 1.0), atol=1e-12)
        np.testing.assert_allclose(moved, shift * full, rtol=1e-12)
    leaks = [np.asarray(draw_runs(2, leak_area=area).plant.leak_area)[1] for area in (3.6e-6, 1e-6)]
    assert leaks[1] == pytest.approx(leaks[0] / 3.6)


def test_sites_differ_by_nature(pump: Dataset) -> None:
    """A slower set point shows in every run's speed and so its flow, which is 38 l/min at 958 rpm."""
    site = load_pump(16, site={"speed": -0.05})
    assert site.description["site"]["speed"] == -0.05
    change = site.features[:, 0] / pump.features[:16, 0] - 1.0
    np.testing.assert_allclose(change, -0.05, atol=0.01)


def test_the_widest_spread_and_shifts_still_converge() -> None:
    corners = np.array(list(itertools.product([0.5 * 0.76, 1.5 * 1.24], [0.5, 1.5], [0.1, 2.7], [0.4, 1.7], range(4))))
    load_factor, speed, viscosity, valves, fault = corners.T
    plant = Plant(
        NOMINAL.load * load_factor,
        NOMINAL.set_point * speed,
        NOMINAL.viscosity * viscosity,
        NOMINAL.valve_area * valves,
        np.where(fault == 1, 1e-5, 1e-9),
        np.where(fault == 2, 0.53, 0.8),
        NOMINAL.friction * np.where(fault == 3, 7, 1),
    )
    flow = simulate(Plant(*(np.concatenate([value, value]) for value in plant)), np.linspace(0, 6, 128)).flow
    assert np.isfinite(flow).all()
    assert (flow.mean(axis=1) > 5.0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"runs": 3}, "runs: received 3; allowed: a whole number, 4 or more"),
        ({"runs": 8.0}, "runs: received 8.0"),
        ({"severity": (0.5, 0.2)}, r"severity: received \(0.5, 0.2\); allowed: a pair 0 <= low <= high <= 1"),
        ({"severity": (0.0, 0.0)}, r"severity: received 0.0; allowed: a number in \(0, 1\]"),
        ({"severity": (0.0, 1.5)}, r"severity: received 1.5"),
        ({"severity": 0.5}, "severity: received 0.5; allowed: a pair"),
        ({"seed": -1}, "seed: received -1"),
        ({"spread": 2.5}, r"spread: received 2.5; allowed: a number in \[0, 2\]"),
        ({"spread": float("nan")}, "spread: received nan"),
        ({"leak_area": 0}, "leak_area: received 0"),
        ({"features": ["qMena"]}, "features: received 'qMena'; .*did you mean qMean"),
        ({"site": {"valve": 0.1}}, "site: received 'valve'; .*did you mean valves"),
        ({"site": {"valves": 0.6}}, r"site.valves: received 0.6; allowed: a number in \[-0.5, 0.5\]"),
        ({"site": 0.1}, "site: received 0.1; allowed: a mapping of load, speed, viscosity, valves"),
    ],
)
def test_bad_arguments_are_refused_before_any_work(
    options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "simulate", lambda *_: pytest.fail("simulated"))
    with pytest.raises(InvalidInput, match=message):
        load_pump(**{"runs": 8, **options})


def test_faults_can_be_told_apart_as_well_as_expected(pump: Dataset) -> None:
    """0.78 over 2000 runs; here with a standard error of 0.02 and a little less from fewer rows: 3 of them."""
    assert accuracy(pump.features, pump.labels) == pytest.approx(0.77, abs=0.06)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"spread": 0.0}, 0.929),
        ({"spread": 0.5, "runs": 1200}, 0.838),
        ({}, 0.779),
        ({"severity": (0.25, 1.0), "runs": 1200}, 0.882),
        ({"leak_area": 1e-6, "runs": 1200}, 0.704),
    ],
)
def test_separability_in_every_setting(options: dict[str, Any], expected: float) -> None:
    """Accuracies of an earlier program on runs of its own, within 3.5 standard errors of the difference."""
    pump = load_pump(**options)
    error = np.sqrt(2 * expected * (1 - expected) / len(pump))
    assert accuracy(pump.features, pump.labels) == pytest.approx(expected, abs=3.5 * error)


@pytest.mark.slow
def test_class_means_without_spread() -> None:
    """Of an earlier program, 500 runs of its own a class: within 4 standard errors of the difference, and 0.5 %."""
    pump = load_pump(spread=0.0)
    expected = {
        "qMean": (38.44, 37.13, 37.83, 37.70),
        "qVar": (10.2, 12.9, 18.8, 9.6),
        "pLow": (3.3, 94.9, 62.5, 2.1),
        "pMid": (99, 140, 191, 98),
        "pHigh": (58, 49, 115, 52),
    }
    for name, means in expected.items():
        column = pump.features[:, FEATURES.index(name)]
        for label, mean in enumerate(means):
            values = column[pump.labels == label]
            last_digit = 0.5 if name in ("pMid", "pHigh") else 0.05
            error = 4 * np.sqrt(2 / 500) * values.std() + last_digit + 0.005 * mean
            assert values.mean() == pytest.approx(mean, abs=error), (name, label)


@pytest.mark.data
def test_features_follow_the_reference_runs(pump: Dataset, real_data: Path) -> None:
    """2000 runs of an earlier program: the same quadratic in the severity, the same scatter about it.

    Compared at the middle severity: 52 differences within 4.5 standard errors (level 4e-4 in all).
    """
    reference = pd.read_csv(real_data / "pump_reference.csv")
    severity = draw_runs(512).severity
    worst = 0.0
    for label in range(4):
        mine, theirs = pump.labels == label, (reference["class"] == label).to_numpy()
        for column, name in enumerate(DEFAULT_FEATURES):
            a = _at_middle(severity[mine], pump.features[mine, column])
            b = _at_middle(reference["severity"].to_numpy()[theirs], reference[name].to_numpy()[theirs])
            worst = max(worst, abs(a[0] - b[0]) / np.hypot(a[1], b[1]))
            if name != "fPeak":
                assert 0.6 < a[2] / b[2] < 1.6, (label, name)
    assert worst < 4.5


def _at_middle(severity: np.ndarray, values: np.ndarray) -> tuple[float, float, float]:
    """Value at severity 1/2 of a fitted quadratic (a constant for a healthy pump), its error, and the scatter."""
    powers = np.vander(severity - 0.5, 3, increasing=True) if severity.any() else np.ones((len(severity), 1))
    weights = np.linalg.pinv(powers)[0]
    scatter = np.std(values - powers @ np.linalg.lstsq(powers, values, rcond=None)[0])
    return float(weights @ values), float(np.linalg.norm(weights) * scatter), float(scatter)

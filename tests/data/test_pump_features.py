"""Features of flow signals against scipy, plain loops and signals whose features are known."""

import math

import numpy as np
import pytest
import scipy.signal
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from fedhedge import InvalidInput
from fedhedge.data.pump import DEFAULT_FEATURES, FEATURES
from fedhedge.data.pump.features import compute

TIME = np.arange(1200) / 1000.0


def named(signal: np.ndarray, names: tuple[str, ...] = FEATURES) -> dict[str, float]:
    return dict(zip(names, compute(np.atleast_2d(signal), names)[0].tolist(), strict=True))


def test_the_names() -> None:
    assert len(FEATURES) == 14
    assert FEATURES[:13] == DEFAULT_FEATURES
    assert FEATURES[13] == "pKurtosis"


signals = arrays.arrays(np.float64, st.integers(2, 40), elements=st.floats(-50, 50, width=32)).filter(
    lambda x: x.std() > 1e-3
)


@given(signals)
@settings(max_examples=40, deadline=None)
def test_features_in_time(x: np.ndarray) -> None:
    found = named(x, FEATURES[:9])
    n, values = len(x), x.tolist()
    mean = math.fsum(values) / n
    rms = math.sqrt(math.fsum(v * v for v in values) / n)
    sums = [math.fsum(values[: i + 1]) for i in range(n)]
    assert found["qMean"] == pytest.approx(mean, abs=1e-12)
    assert found["qVar"] == pytest.approx(np.var(x, ddof=1))
    assert found["qSkewness"] == pytest.approx(scipy.stats.skew(x), abs=1e-6)
    assert found["qKurtosis"] == pytest.approx(scipy.stats.kurtosis(x, fisher=False))
    assert found["qPeak2Peak"] == pytest.approx(max(values) - min(values))
    assert found["qRMS"] == pytest.approx(rms)
    assert found["qCrest"] == pytest.approx(max(map(abs, values)) / rms)
    assert found["qMAD"] == pytest.approx(math.fsum(abs(v - mean) for v in values) / n)
    assert found["qCSRange"] == pytest.approx(max(sums) - min(sums), abs=1e-9)


def test_the_spectrum_is_scipy_s_periodogram() -> None:
    x = 38.0 + np.random.default_rng(0).normal(size=1200).cumsum()
    frequency, power = scipy.signal.periodogram(
        x, 1000.0, np.kaiser(1200, 20.0), nfft=16384, detrend="constant", scaling="spectrum"
    )
    found = named(x)
    for name, low, high in [("pLow", 10, 20), ("pMid", 40, 60), ("pHigh", 100, 250)]:
        assert found[name] == pytest.approx(power[(frequency >= low) & (frequency <= high)].sum(), rel=1e-9)
    band = (frequency >= 2) & (frequency <= 250)
    assert found["fPeak"] == frequency[band][power[band].argmax()]


@pytest.mark.parametrize(("frequency", "name"), [(15.0, "pLow"), (50.0, "pMid"), (180.0, "pHigh")])
def test_the_power_of_a_sine(frequency: float, name: str) -> None:
    """Parseval: the bins of a band add up to amplitude^2 / 2 x points x sum w^2 / (sum w)^2."""
    found = named(40.0 + 3.0 * np.sin(2 * np.pi * frequency * TIME))
    window = np.kaiser(1200, 20.0)
    expected = 3.0**2 / 2 * 16384 * (window**2).sum() / window.sum() ** 2
    assert found[name] == pytest.approx(expected, rel=1e-3)
    assert found["fPeak"] == pytest.approx(frequency, abs=0.5 * 1000 / 16384)
    for other in {"pLow", "pMid", "pHigh"} - {name}:
        assert found[other] < 1e-6 * expected


def test_the_peak_is_looked_for_from_2_to_250_hz() -> None:
    x = 5.0 * np.sin(2 * np.pi * 400 * TIME) + np.sin(2 * np.pi * 100 * TIME) + 5.0 * np.sin(2 * np.pi * 0.2 * TIME)
    assert named(x)["fPeak"] == pytest.approx(100.0, abs=0.1)


def test_spectral_kurtosis_finds_the_band_of_bursts() -> None:
    rng = np.random.default_rng(4)
    burst = np.where((np.arange(1200) % 600) < 60, 6.0, 0.0) * np.sin(2 * np.pi * 203.125 * TIME)
    assert named(rng.normal(size=1200) + burst)["pKurtosis"] == pytest.approx(203.125, abs=1000 / 128)


def test_spectral_kurtosis_is_that_of_scipy_s_short_time_spectra() -> None:
    x = np.random.default_rng(5).standard_t(3, size=(20, 1200))
    window = scipy.signal.windows.hann(128, sym=False)
    expected = []
    for row in x:
        frequency, _, short = scipy.signal.stft(
            row - row.mean(), 1000.0, window, 128, 96, boundary=None, padded=False, detrend=False
        )
        power = np.abs(short) ** 2
        kurtosis = (power**2).mean(axis=1) / power.mean(axis=1) ** 2 - 2
        expected.append(frequency[1:-1][kurtosis[1:-1].argmax()])
    np.testing.assert_allclose(compute(x, ["pKurtosis"])[:, 0], expected)


def test_columns_come_in_the_order_asked_for() -> None:
    x = np.random.default_rng(6).normal(size=(3, 1200))
    everything = compute(x, FEATURES)
    np.testing.assert_array_equal(compute(x), everything[:, :13])
    np.testing.assert_array_equal(compute(x, ["pMid", "qMean"]), everything[:, [11, 0]])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["qMean", "qmean"], "features: received 'qmean'; allowed: .*did you mean qMean"),
        (["qMean", "qMean"], "features: received .*; allowed: at least one and different names"),
        ([], "features: received .*; allowed: at least one"),
        ("qMean", "features: received 'qMean'; allowed: a list of"),
        (3, "features: received 3; allowed: a list of"),
    ],
)
def test_bad_names_are_refused(names: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        compute(np.ones((1, 1200)), names)  # type: ignore[arg-type]

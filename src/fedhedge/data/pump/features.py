"""Condition indicators of a flow signal: in time, in its power spectrum, and spectral kurtosis."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property

import numpy as np
import scipy.fft
from scipy.signal import windows

from fedhedge import checks
from fedhedge.checks import InvalidInput

SAMPLE_RATE = 1000.0
SPECTRUM_LENGTH = 16384
PEAK_BAND = (2.0, 250.0)
KAISER_BETA = 20.0
SEGMENT, HOP = 128, 32


class Signals:
    """Signals x [n, N] sampled at 1 kHz, one a row, and what several features need of them.

    m_k is the mean of (x - mean)^k. Signals are taken to carry noise: none is constant or without power at a frequency.
    """

    def __init__(self, x: np.ndarray) -> None:
        self.x = x

    @cached_property
    def deviation(self) -> np.ndarray:
        """x - mean, [n, N]."""
        return np.asarray(self.x - self.x.mean(axis=1, keepdims=True))

    @cached_property
    def squares(self) -> np.ndarray:
        """(x - mean)^2, [n, N]."""
        return self.deviation**2

    @cached_property
    def variance(self) -> np.ndarray:
        """m_2, [n]."""
        return np.asarray(self.squares.mean(axis=1))

    @cached_property
    def rms(self) -> np.ndarray:
        """Root of the mean of x^2, [n]."""
        return np.asarray(np.sqrt(np.mean(self.x**2, axis=1)))

    @cached_property
    def spectrum(self) -> np.ndarray:
        """One-sided power 2 |FFT(w (x - mean))|^2 / (sum w)^2 at the `frequencies`, [n, bins].

        w is a Kaiser window (beta 20) over the whole record, zero-padded to 16384 points.
        """
        window = np.kaiser(self.x.shape[1], KAISER_BETA)
        transform = scipy.fft.rfft(self.deviation * window, SPECTRUM_LENGTH, axis=1)
        return np.asarray(2.0 * (transform.real**2 + transform.imag**2) / window.sum() ** 2)

    @property
    def frequencies(self) -> np.ndarray:
        """Frequencies of the spectrum, Hz."""
        return np.arange(SPECTRUM_LENGTH // 2 + 1) * (SAMPLE_RATE / SPECTRUM_LENGTH)

    def peak(self) -> np.ndarray:
        """Frequency of the greatest power from 2 to 250 Hz, [n]."""
        band = _within(self.frequencies, *PEAK_BAND)
        return np.asarray(self.frequencies[band][self.spectrum[:, band].argmax(axis=1)])

    def power(self, low: float, high: float) -> np.ndarray:
        """Sum of the spectrum from `low` to `high` Hz, ends included, [n]."""
        return np.asarray(self.spectrum[:, _within(self.frequencies, low, high)].sum(axis=1))

    def kurtosis_peak(self) -> np.ndarray:
        """Frequency of the greatest spectral kurtosis <|X|^4> / <|X|^2>^2 - 2 over short-time spectra X, [n].

        Hann windows of 128 points, a new one every 32. The ends of the spectrum are left out: X is real there, which
        raises its kurtosis.
        """
        pieces = np.lib.stride_tricks.sliding_window_view(self.deviation, SEGMENT, axis=1)[:, ::HOP]
        power = np.abs(scipy.fft.rfft(pieces * windows.hann(SEGMENT, sym=False), axis=2)) ** 2
        kurtosis = (power**2).mean(axis=1) / power.mean(axis=1) ** 2 - 2.0
        return np.asarray((kurtosis[:, 1:-1].argmax(axis=1) + 1) * (SAMPLE_RATE / SEGMENT))


def _within(frequencies: np.ndarray, low: float, high: float) -> slice:
    return slice(int(np.searchsorted(frequencies, low)), int(np.searchsorted(frequencies, high, side="right")))


_FORMULAS: dict[str, Callable[[Signals], np.ndarray]] = {
    "qMean": lambda s: s.x.mean(axis=1),
    "qVar": lambda s: s.variance * (s.x.shape[1] / (s.x.shape[1] - 1)),
    "qSkewness": lambda s: (s.squares * s.deviation).mean(axis=1) / s.variance**1.5,
    "qKurtosis": lambda s: (s.squares**2).mean(axis=1) / s.variance**2,
    "qPeak2Peak": lambda s: np.ptp(s.x, axis=1),
    "qCrest": lambda s: np.abs(s.x).max(axis=1) / s.rms,
    "qRMS": lambda s: s.rms,
    "qMAD": lambda s: np.abs(s.deviation).mean(axis=1),
    "qCSRange": lambda s: np.ptp(np.cumsum(s.x, axis=1), axis=1),
    "fPeak": Signals.peak,
    "pLow": lambda s: s.power(10.0, 20.0),
    "pMid": lambda s: s.power(40.0, 60.0),
    "pHigh": lambda s: s.power(100.0, 250.0),
    "pKurtosis": Signals.kurtosis_peak,
}
FEATURES = tuple(_FORMULAS)
DEFAULT_FEATURES = FEATURES[:-1]


def check_names(names: Iterable[str] | None) -> tuple[str, ...]:
    """The names of features to compute, None for the default; InvalidInput for an unknown or repeated one."""
    if names is None:
        return DEFAULT_FEATURES
    allowed = f"different names among {', '.join(FEATURES)}"
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InvalidInput("features", names, f"a list of {allowed}")
    chosen = tuple(checks.one_of("features", name, FEATURES) for name in names)
    if not chosen or len(set(chosen)) < len(chosen):
        raise InvalidInput("features", list(chosen), f"at least one and {allowed}")
    return chosen


def compute(x: np.ndarray, names: Iterable[str] | None = None) -> np.ndarray:
    """Features of signals x [n, N] sampled at 1 kHz, float64 [n, number of names].

    Time: mean; variance (divisor N - 1); skewness m3 / m2^1.5 and kurtosis m4 / m2^2 (3 for a normal law) of central
    moments; peak to peak; greatest |x| over the root mean square; that root; mean absolute deviation; range of the
    cumulative sum. Frequency (see `Signals.spectrum`): frequency of the peak; power in 10 to 20, 40 to 60 and 100 to
    250 Hz; frequency of the greatest spectral kurtosis (only when named).

    Raises InvalidInput for a name that is not in `FEATURES`.
    """
    chosen = check_names(names)
    signals = Signals(np.asarray(x, float))
    return np.stack([_FORMULAS[name](signals) for name in chosen], axis=1)

"""Gaussian noise for the rows of real people: the operating system's entropy, and a grid on which nothing leaks.

Sums of doubles give away the number to which noise was added by the digits that the noise cannot reach (Mironov 2012,
"On significance of the least significant bits for differential privacy"). Here noise is a discrete Gaussian on a
grid of spacing g, drawn exactly, and what it is added to is rounded to that grid *first*:

    release = round_to_grid(value, g) + noise,  noise in g Z, P(noise = k g) proportional to exp(-(k g)^2 / (2 sigma^2))

g is the power of two with 2^-31 sigma < g <= 2^-30 sigma. All of it is exact in doubles as long as |value| < 2^52 g,
which is more than two million sigma; `round_to_grid` refuses more.

What the grid costs, and who pays:

1. Rounding moves each of d entries by at most g/2, hence two neighbours apart by at most g sqrt(d) more. The
   sensitivity is `sensitivity_after_rounding`; `scale_after_rounding` raises sigma so that mu = sensitivity / sigma
   stays as planned. It costs noise (1e-6 of it for d = 1000 and sigma = 30 sensitivities), not epsilon.
2. The discrete Gaussian with sensitivity D on the grid satisfies zero-concentrated privacy with
   rho = D^2 / (2 sigma^2), as the continuous one does (Canonne, Kamath and Steinke 2020, arXiv 2004.00010, Theorem 4).
   Accounting here is that of the continuous Gaussian, rounded to the grid. `distance_to_gaussian` bounds the total
   variation between the two: d entries in all add at most (1 + exp(epsilon)) times 2.2e-20 d to delta.
3. The value itself is computed in doubles. Its own rounding errors, some 1e-16 of it, belong to the sensitivity.

Nothing here takes a seed. The sampler does not run in constant time: keep the time that a draw takes to yourself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fedhedge import checks
from fedhedge.deployment.extra import needed
from fedhedge.privacy.noise import FloatArray

# log2 of sigma / g, rounded down.
BITS = 30
_SMALLEST, _LARGEST = 2.0**-900, 2.0**900


def gaussian(shape: Sequence[int], scale: float) -> FloatArray:
    """Independent noise of deviation `scale`, float64 of `shape`, every entry a multiple of `granularity(scale)`.

    Drawn by OpenDP's exact sampler of the discrete Gaussian in rational arithmetic (Canonne, Kamath and Steinke 2020,
    Algorithm 3), from OpenSSL's generator, which the operating system seeds, also again after a fork.

    Raises InvalidInput unless `scale` is finite and in [2^-900, 2^900], MissingExtra without OpenDP.
    """
    spacing = granularity(scale)
    lengths = [checks.integer(f"shape[{axis}]", length, low=0) for axis, length in enumerate(shape)]
    entries = math.prod(lengths)
    dp = needed("opendp.prelude")
    # OpenDP's word for constructors whose proofs its own committee has not all approved; the Gaussian is one.
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    draw = dp.m.make_gaussian(*space, scale=float(scale) / spacing)
    steps = draw([0] * entries) if entries else []
    return np.asarray(steps, dtype=np.float64).reshape(lengths) * spacing


class EntropyNoise:
    """`gaussian` as the `NoiseSource` of a client's releases; asked twice, it draws twice."""

    secure = True

    def draw(
        self, client: int, round: int, sigmas: Sequence[float], shapes: Sequence[tuple[int, ...]]
    ) -> list[FloatArray]:
        """One array per release; zeros where sigma is 0, which is for releases that depend on no row."""
        pairs = zip(sigmas, shapes, strict=True)
        return [np.zeros(shape) if sigma == 0 else gaussian(shape, sigma) for sigma, shape in pairs]


def granularity(scale: float) -> float:
    """g, the spacing of the grid: 2^(floor(log2 scale) - 30), in the unit of `scale`. Raises InvalidInput."""
    _, exponent = math.frexp(checks.number("scale", scale, low=_SMALLEST, high=_LARGEST))
    return math.ldexp(1.0, exponent - 1 - BITS)


def round_to_grid(values: FloatArray, spacing: float) -> FloatArray:
    """The nearest multiples of `spacing`, a power of two; halves go up, so that shifts by the grid change nothing.

    Raises InvalidInput where a value is not finite or 2^52 spacings or more, where doubles have no room for the noise.
    """
    if math.frexp(checks.number("spacing", spacing, low=_SMALLEST * 2.0**-BITS))[0] != 0.5:
        raise checks.InvalidInput("spacing", spacing, "a power of two")
    values = np.asarray(values, dtype=np.float64)
    limit = 2.0**52 * spacing
    if not np.all(np.abs(values) < limit):
        wrong = values[~(np.abs(values) < limit)].flat[0]
        raise checks.InvalidInput(
            "value", float(wrong), f"a number of less than {limit:.3g}, 2^52 spacings of the grid"
        )
    return np.asarray(np.floor(values / spacing + 0.5) * spacing)


def sensitivity_after_rounding(sensitivity: float, dimension: int, spacing: float) -> float:
    """l2 sensitivity of a statistic of `dimension` entries once rounded to the grid: sensitivity + g sqrt(d).

    In the unit of `sensitivity`, over the same neighbouring tables. |round(a) - round(b)| <= |a - b| + g in each entry,
    and the l2 norm of (g, ..., g) is g sqrt(d).
    """
    sensitivity = checks.number("sensitivity", sensitivity, low=0)
    spacing = checks.number("spacing", spacing, low=0)
    return sensitivity + spacing * math.sqrt(checks.integer("dimension", dimension, low=0))


def scale_after_rounding(scale: float, multiplier: float, dimension: int) -> float:
    """sigma' >= sigma with which a rounded release of `dimension` entries has the mu of the release that was planned.

    sigma' = sigma + multiplier g' sqrt(d), g' = granularity(sigma'), multiplier = sigma / sensitivity = 1 / mu.
    Raises InvalidInput where that would double sigma: such a release hides nothing worth the name.
    """
    scale = checks.number("scale", scale, low=_SMALLEST, high=_LARGEST / 2)
    multiplier = checks.number("multiplier", multiplier, above=0)
    spacing, raised = granularity(scale), scale
    for _ in range(2):
        raised = scale * (1.0 + 4.0 * math.ulp(1.0)) + multiplier * sensitivity_after_rounding(0.0, dimension, spacing)
        spacing = granularity(min(raised, _LARGEST))
    if raised > 2.0 * scale:
        raise checks.InvalidInput(
            "multiplier", multiplier, f"less than 2^30 / sqrt({dimension})", "the grid is too wide"
        )
    return raised


def distance_to_gaussian(dimension: int, ratio: float = 2.0**-BITS) -> float:
    """Bound on the total variation between noise on the grid and N(0, sigma^2) rounded to it: d (g/sigma)^2 / 40.

    dimension: d, of all releases together. ratio: g / sigma, at most 1/8.

    Proof. For f(u) = exp(-(u g/sigma)^2 / 2), the integral of f over a cell differs from f at its middle by at most
    max |f''| / 24 (midpoint rule). The sum over cells is at most (integral |f''| + variation of f'') / 24, and the
    integral of |f''| is 4 exp(-1/2) g/sigma; over sqrt(2 pi) sigma/g, and halved, that is 0.0202 (g/sigma)^2; the
    variation, 3.79 (g/sigma)^2, adds less than 0.004 (g/sigma)^2. The normalisers differ by the factor
    1 + 2 exp(-2 (pi sigma/g)^2) (Poisson summation). Entries are independent, so that distances add.
    """
    ratio = checks.number("ratio", ratio, above=0, high=0.125)
    return min(1.0, checks.integer("dimension", dimension, low=0) * ratio**2 / 40.0)

"""Sources of the Gaussian noise that makes a release private.

What privacy a round gives is decided by the deviations (see `calibrate`) and proven for one replaced row of a client;
a source only has to draw them well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fedhedge import checks
from fedhedge.streams import Purpose, check_seed, generator

FloatArray = NDArray[np.float64]


class NoiseSource(Protocol):
    """Independent Gaussian noise for all releases of one client in one round.

    `secure` says whether the noise protects real people: unpredictable to everyone (operating-system entropy) and safe
    from floating-point attacks. The privacy statement repeats it.
    """

    secure: bool

    def draw(
        self, client: int, round: int, sigmas: Sequence[float], shapes: Sequence[tuple[int, ...]]
    ) -> list[FloatArray]:
        """One array per release, float64 of the given shape, entries N(0, sigma^2) in the unit of the release.

        All releases of a round come from one call: a reproducible source returns the same numbers when it is asked for
        the same client and round again, and two releases must never share their noise.
        """
        ...


class SeededNoise:
    """Reproducible noise for simulation, from the Philox stream (noise, client, round) of a root seed.

    Not for the data of real people: whoever knows or guesses the seed subtracts the noise, and the rounding of
    doubles itself leaks (Mironov 2012, "On significance of the least significant bits for differential privacy").
    """

    secure = False

    def __init__(self, seed: int) -> None:
        self.seed = check_seed(seed)

    def draw(
        self, client: int, round: int, sigmas: Sequence[float], shapes: Sequence[tuple[int, ...]]
    ) -> list[FloatArray]:
        """Noise of the round's releases, in their order; see `NoiseSource.draw`."""
        sigmas = [checks.number("sigma", sigma, low=0) for sigma in sigmas]
        stream = generator(self.seed, Purpose.NOISE, client, round)
        return [sigma * stream.standard_normal(shape) for sigma, shape in zip(sigmas, shapes, strict=True)]

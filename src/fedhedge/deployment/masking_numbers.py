"""Fixed-point numbers modulo a power of two, in which the sum of masked uploads is exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedhedge import checks
from fedhedge.privacy.noise import FloatArray

Residues = NDArray[np.unsignedinteger[Any]]
# Whole numbers up to this one, and the next, are doubles.
_EXACT = 2**53 - 1


@dataclass(frozen=True)
class Quantiser:
    """x as the whole number nearest to x 2^fraction, modulo 2^bits; halves go to the even neighbour.

    bits: 32 or 64, what one number takes on the wire. fraction: binary digits after the point; an upload is off by
    at most `step` / 2 = 2^-(fraction + 1) in each entry, and a sum of n of them by at most n times that, exactly.
    """

    bits: int = 64
    fraction: int = 30

    def __post_init__(self) -> None:
        checks.one_of("bits", self.bits, (32, 64))
        checks.integer("fraction", self.fraction, low=-900, high=900)

    @property
    def step(self) -> float:
        """2^-fraction, in the unit of the numbers."""
        return float(2.0**-self.fraction)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Little-endian unsigned integers of `bits` bits, whose arithmetic is modulo 2^bits."""
        return np.dtype(f"<u{self.bits // 8}")

    def largest(self, clients: int) -> float:
        """The largest |x| of each of `clients` uploads whose sum neither leaves the modulus nor the exact doubles."""
        most = min(2 ** (self.bits - 1) - 1, _EXACT) // checks.integer("clients", clients, low=1)
        return float(most) * self.step

    def encode(self, values: FloatArray, clients: int) -> Residues:
        """float[d] as residues[d]. Raises InvalidInput where a value is not finite or above `largest(clients)`."""
        values = np.asarray(values, dtype=np.float64)
        limit = self.largest(clients)
        with np.errstate(over="ignore"):
            steps = np.rint(values * 2.0**self.fraction)
        inside = np.abs(steps) <= limit * 2.0**self.fraction
        if not inside.all():
            place = int(np.flatnonzero(~inside)[0])
            hint = f"entry {place}; {clients} of them are added up in {self.bits} bits with steps of {self.step:g}"
            raise checks.InvalidInput("upload", float(values.flat[place]), f"numbers within +-{limit:.6g}", hint)
        return np.asarray(steps.astype(np.int64).astype(self.dtype))

    def decode(self, total: Residues) -> FloatArray:
        """residues[d] of a sum as float64[d], exact."""
        signed = total.astype(self.dtype).view(np.dtype(f"<i{self.bits // 8}"))
        return np.asarray(signed.astype(np.float64) * self.step)

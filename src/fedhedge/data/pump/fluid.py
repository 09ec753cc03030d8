"""Oil with a little trapped air, and what the pump's chambers and lines both need to know about it.

Pressures are absolute, in Pa. Where equations are solved, y = (p / 101325 Pa)^(1/7) stands for a pressure: the
polytropic exponent of the air is 7/5, so that p and the relative volume of the air, (101325 Pa / p)^(5/7), are the
whole powers y^7 and y^-5 and no logarithm is taken.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

ATMOSPHERE = 101325.0
DENSITY = 870.0
BULK_MODULUS = 1.3e9
AIR = 0.005
POLYTROPIC = 7 / 5
DISCHARGE = 0.7
# Relative shrinking of the oil for each atmosphere of pressure.
OIL = (1.0 - AIR) * ATMOSPHERE / BULK_MODULUS


def from_pressure(pressure: jax.Array) -> jax.Array:
    """y of an absolute pressure."""
    return jnp.exp(jnp.log(pressure / ATMOSPHERE) / 7)


def relative_volume(y: jax.Array) -> jax.Array:
    """Volume of oil and air at y over their volume at atmospheric pressure.

    g(p) = a (PA / p)^(1/n) + (1 - a)(1 - (p - PA) / E) with a the share of air and PA atmospheric pressure.
    """
    return AIR / y**5 + (1.0 - AIR) - OIL * (y**7 - 1.0)


def capacity(volume: float, pressure: jax.Array) -> jax.Array:
    """Volume that a line of fixed `volume` takes in for each Pa, C = V (1/E + a (PA / p)^(1/n) / (n p))."""
    air = jnp.exp(jnp.log(pressure / ATMOSPHERE) * -(1.0 + 1.0 / POLYTROPIC)) / (POLYTROPIC * ATMOSPHERE)
    return volume * (1.0 / BULK_MODULUS + AIR * air)

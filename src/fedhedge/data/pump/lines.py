"""The pipes before and after the pump: one pressure each, linearly implicit steps. Arrays are [N], one value a run."""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from fedhedge.data.pump import fluid
from fedhedge.data.pump.chambers import CRACKING
from fedhedge.data.pump.fluid import ATMOSPHERE, DENSITY, DISCHARGE

PIPE_LENGTH = 5.0
PIPE_DIAMETER = 0.03
PIPE_VOLUME = PIPE_LENGTH * math.pi * PIPE_DIAMETER**2 / 4
MANIFOLD_VOLUME = 2e-4
DAMPER_VOLUME = 1e-4
LOAD_ORIFICE = 2e-4


class Line(NamedTuple):
    """Pressure of a line and what follows from it, [N] each.

    What follows is kept from step to step because XLA would compute it again in every kernel that uses it.
    """

    pressure: jax.Array
    capacity: jax.Array
    opens_at: jax.Array
    """y at which the valve between the line and a chamber cracks."""
    opens_with: jax.Array
    """Relative volume of the chamber's fluid there."""


def inlet(pressure: jax.Array) -> Line:
    """The line from the tank."""
    # A line below the cracking pressure opens no valve: no chamber gets below zero.
    return _line(pressure, jnp.maximum(pressure - CRACKING, 50.0), PIPE_VOLUME + MANIFOLD_VOLUME)


def outlet(pressure: jax.Array) -> Line:
    """The line to the load, with the damping chamber."""
    return _line(pressure, pressure + CRACKING, PIPE_VOLUME + MANIFOLD_VOLUME + DAMPER_VOLUME)


def _line(pressure: jax.Array, opening: jax.Array, volume: float) -> Line:
    opens_at = fluid.from_pressure(opening)
    return Line(pressure, fluid.capacity(volume, pressure), opens_at, fluid.relative_volume(opens_at))


def resistance(viscosity: jax.Array) -> jax.Array:
    """Laminar resistance of a pipe, R = 128 nu rho L / (pi d^4), Pa s / m3."""
    return 128.0 * viscosity * DENSITY * PIPE_LENGTH / (math.pi * PIPE_DIAMETER**4)


def step_inlet(line: Line, inflow: jax.Array, pipe: jax.Array, step: float) -> Line:
    """C dp/dt = (PA - p) / R - inflow, with `inflow` the flow into the chambers."""
    held = line.capacity / step
    return inlet((held * line.pressure + ATMOSPHERE / pipe - inflow) / (held + 1.0 / pipe))


def step_outlet(line: Line, outflow: jax.Array, pipe: jax.Array, load: jax.Array, step: float) -> Line:
    """C dp/dt = outflow - Q, where p - PA - load = R Q + rho/2 (Q / (Cd a))^2 gives the flow Q through the load."""
    bend = DENSITY / 2.0 / (DISCHARGE * LOAD_ORIFICE) ** 2
    head = line.pressure - ATMOSPHERE - load
    # Also R + 2 bend |Q|, the slope of the head in Q.
    slope = jnp.sqrt(pipe * pipe + 4.0 * bend * jnp.abs(head))
    flow = jnp.sign(head) * (slope - pipe) / (2.0 * bend)
    return outlet(line.pressure + (outflow - flow) / (line.capacity / step + 1.0 / slope))

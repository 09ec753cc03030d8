"""The triplex pump with its drive and lines: one run or many at once, sampled at 1 kHz.

Three plungers on one crank draw oil from a tank and press it into a line to a load. SI units inside, absolute
pressures. Arrays are [N] (one value a run) or [3, N] (cylinder, run).

Dimensions and constants of the control are those that MathWorks publishes for its example of pump fault classification;
the equations, the lumped lines, the masses, the viscosity (tuned to the published flow plots) and the numerics are our
own.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fedhedge.data.pump import chambers, lines
from fedhedge.data.pump.chambers import Chambers, Orifices
from fedhedge.data.pump.fluid import ATMOSPHERE, DENSITY, DISCHARGE
from fedhedge.data.pump.lines import Line

SAMPLES = 1200
STEP = 2e-4
STEPS_PER_SAMPLE = 5
ITERATION_LIMIT = 40

CRANK_RADIUS = 0.015
ROD_LENGTH = 0.0725
PLUNGER_AREA = math.pi * 0.012**2
DEAD_VOLUME = 8e-6
PLUNGER_MASS = 0.4
CRANK_INERTIA = 7e-3
GEAR_RATIO = 2.0
RPM = 30.0 / math.pi
LITRES_PER_MINUTE = 6e4
PER_DEGREE = 180.0 / math.pi


class Plant(NamedTuple):
    """What may differ between runs, float64 [N] or one number for all. The defaults are the healthy nominal pump."""

    load: np.ndarray | float = 7e5
    """Gauge pressure behind the load's orifice, Pa."""
    set_point: np.ndarray | float = 958 * 1.0731
    """Speed that the drive asks for, rpm; it droops to 958 rpm on the healthy pump."""
    viscosity: np.ndarray | float = 1.3e-4
    """Kinematic viscosity of the oil, m2/s."""
    valve_area: np.ndarray | float = 1e-4
    """Area of every valve when fully open, m2."""
    leak_area: np.ndarray | float = 1e-9
    """Area of the leak out of cylinder 0, m2."""
    inlet_opening: np.ndarray | float = 0.8
    """Share of its inlet valve's area that is left to cylinder 0."""
    friction: np.ndarray | float = 1e-4 * PER_DEGREE
    """Viscous friction of the bearings, N m s / rad."""


class Traces(NamedTuple):
    """What sensors without noise would see, float64 [N, 1200], one sample a millisecond."""

    flow: np.ndarray
    """Flow out of the pump, litres a minute."""
    speed: np.ndarray
    """Speed of the crank, rpm."""


class _Fixed(NamedTuple):
    """What a run does not change, [N] each."""

    orifices: Orifices
    pipe: jax.Array
    load: jax.Array
    set_point: jax.Array
    friction: jax.Array


class _Drive(NamedTuple):
    torque: jax.Array
    integral: jax.Array
    measured: jax.Array


class _State(NamedTuple):
    """The crank as sine and cosine of its angle with its speed in rad/s, and the rest of the pump."""

    sine: jax.Array
    cosine: jax.Array
    speed: jax.Array
    drive: _Drive
    chambers: Chambers
    inlet: Line
    outlet: Line


def simulate(plant: Plant, angle: np.ndarray, *, from_rest: bool = False, limit: int = ITERATION_LIMIT) -> Traces:
    """Run the pump from crank angle `angle` (rad, [N]) and return the last 1.2 s.

    By default a run starts near the working point (100 rad/s) and lasts 1.5 s; `from_rest` starts it at rest for 2 s.
    Semi-implicit steps of 0.2 ms: chambers implicit, lines linearly implicit, mechanics explicit with implicit
    bearing friction.

    A run's numbers depend neither on the other runs of the call nor on threads; on how many there are only by
    rounding. Computed on the CPU in float64, whatever JAX is set to. Raises RuntimeError when the chamber pressures do
    not converge within `limit` iterations.
    """
    n = len(angle)
    full = Plant(*(np.broadcast_to(np.asarray(value, float), n) for value in plant))
    with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        flow, speed, iterations = _run(full, np.asarray(angle, float), from_rest, limit)
        if int(iterations) >= limit:
            raise RuntimeError(f"pump: the chamber pressures did not converge within {limit} iterations")
        return Traces(np.asarray(flow).T, np.asarray(speed).T)


@functools.partial(jax.jit, static_argnames="from_rest")
def _run(plant: Plant, angle: jax.Array, from_rest: bool, limit: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Flow and speed [1200, N] and the most iterations that a step took."""
    fixed = _fixed(plant)

    def step(_: int, carry: tuple[_State, jax.Array, jax.Array]) -> tuple[_State, jax.Array, jax.Array]:
        state, flow, iterations = _step(carry[0], fixed, limit)
        return state, flow, jnp.maximum(carry[2], iterations)

    def sample(carry: tuple[_State, jax.Array, jax.Array], _: None) -> tuple[Any, tuple[jax.Array, jax.Array]]:
        carry = lax.fori_loop(0, STEPS_PER_SAMPLE, step, carry)
        return carry, (carry[1] * LITRES_PER_MINUTE, carry[0].speed * RPM)

    start = (_start(fixed, angle, from_rest), jnp.zeros_like(angle), jnp.int32(0))
    (_, _, most), (flow, speed) = lax.scan(sample, start, None, length=2000 if from_rest else 1500)
    return flow[-SAMPLES:], speed[-SAMPLES:], most


def _fixed(plant: Plant) -> _Fixed:
    load, set_point, viscosity, valve_area, leak_area, inlet_opening, friction = map(jnp.asarray, plant)
    orifice = DISCHARGE * math.sqrt(2.0 / DENSITY)
    valve = orifice * valve_area
    first = jnp.arange(3)[:, None] == 0
    orifices = Orifices(valve * jnp.where(first, inlet_opening, 1.0), valve, orifice * leak_area)
    return _Fixed(orifices, lines.resistance(viscosity), load, set_point, friction)


def _start(fixed: _Fixed, angle: jax.Array, from_rest: bool) -> _State:
    speed, torque, integral = (0.0, 0.0, 0.0) if from_rest else (100.0, 3.0, 0.2)
    constant = functools.partial(jnp.full_like, angle)
    sine, cosine = jnp.sin(angle), jnp.cos(angle)
    volume, _ = _plungers(sine, cosine)
    return _State(
        sine,
        cosine,
        constant(speed),
        _Drive(constant(torque), constant(integral), constant(speed * RPM)),
        Chambers(volume, jnp.ones_like(volume), jnp.ones_like(volume)),
        lines.inlet(constant(ATMOSPHERE)),
        lines.outlet(ATMOSPHERE + fixed.load),
    )


def _step(state: _State, fixed: _Fixed, limit: int) -> tuple[_State, jax.Array, jax.Array]:
    """One step; also the flow out of the pump [N] and the iterations that the slowest chamber took.

    Crank: (J + m sum x'^2) dw/dt = 2 T + sum ((p - PA) A - F) x' - b w with w the speed, T the motor's torque, x' the
    levers dx/d(angle) and F = 0.2 tanh(v / 0.01) + 0.1 v N the friction of a plunger at v = w x'.
    """
    sine, cosine = _turn(state.sine, state.cosine, STEP * state.speed)
    volume, lever = _plungers(sine, cosine)
    filled, exchange = chambers.advance(state.chambers, volume, state.inlet, state.outlet, fixed.orifices, STEP, limit)
    inflow, outflow = exchange.inflow.sum(axis=0), exchange.outflow.sum(axis=0)
    inlet = lines.step_inlet(state.inlet, inflow, fixed.pipe, STEP)
    outlet = lines.step_outlet(state.outlet, outflow, fixed.pipe, fixed.load, STEP)

    velocity = state.speed * lever
    rubbing = 0.2 * jnp.tanh(velocity / 0.01) + 0.1 * velocity
    push = ((exchange.pressure - ATMOSPHERE) * PLUNGER_AREA - rubbing) * lever
    inertia = (CRANK_INERTIA + PLUNGER_MASS * (lever * lever).sum(axis=0)) / STEP
    turning = GEAR_RATIO * state.drive.torque + push.sum(axis=0)
    speed = (inertia * state.speed + turning) / (inertia + fixed.friction)
    drive = _control(state.drive, fixed.set_point, speed * RPM)
    return _State(sine, cosine, speed, drive, filled, inlet, outlet), outflow, exchange.iterations


def _control(drive: _Drive, set_point: jax.Array, speed: jax.Array) -> _Drive:
    """PI control of the motor's torque (N m) on a filtered speed (rpm).

    With the error e: I' = 0.002 e within 40; T' = (clip(I + 0.04 e, -5, 5) - T) / 20 ms; the filter has 200 Hz.
    """
    error = set_point - drive.measured
    integral = jnp.clip(drive.integral + STEP * 0.002 * error, -40.0, 40.0)
    wanted = jnp.clip(integral + 0.04 * error, -5.0, 5.0)
    gain = STEP * 2.0 * math.pi * 200.0
    return _Drive(
        drive.torque + STEP / 0.02 * (wanted - drive.torque),
        integral,
        (drive.measured + gain * speed) / (1.0 + gain),
    )


def _turn(sine: jax.Array, cosine: jax.Array, angle: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Sine and cosine after a further small angle (below 0.05), by their series to rounding."""
    square = angle * angle
    s = angle * (1.0 - square / 6 * (1.0 - square / 20 * (1.0 - square / 42)))
    c = 1.0 - square / 2 * (1.0 - square / 12 * (1.0 - square / 30))
    return sine * c + cosine * s, cosine * c - sine * s


def _plungers(sine: jax.Array, cosine: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Chamber volumes V and levers dx/d(angle), [3, N], of plungers at thirds of a turn.

    x = r (1 - cos) + l (1 - w), w = sqrt(1 - (r/l)^2 sin^2), is the way from top dead centre.
    """
    phase = 2.0 * math.pi / 3.0 * np.arange(3)[:, None]
    s = sine * np.cos(phase) + cosine * np.sin(phase)
    c = cosine * np.cos(phase) - sine * np.sin(phase)
    ratio = CRANK_RADIUS / ROD_LENGTH
    w = jnp.sqrt(1.0 - (ratio * s) ** 2)
    way = CRANK_RADIUS * (1.0 - c) + ROD_LENGTH * (1.0 - w)
    return DEAD_VOLUME + PLUNGER_AREA * way, CRANK_RADIUS * s * (1.0 + ratio * c / w)

"""The three pump chambers with their check valves and a leak: one implicit step.

Pressures are absolute, in Pa, or stand as y (see `fluid`); volumes in m3, flows in m3/s. Arrays are [3, N]: cylinder,
run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import lax

from fedhedge.data.pump.fluid import AIR, ATMOSPHERE, OIL

CRACKING = 0.3e5
FULLY_OPEN = 1.2e5

_OPENING_RANGE = FULLY_OPEN - CRACKING
# Smooths the leak's square root where its head is below about 1 kPa.
_LEAK_SMOOTHING = 1e6
# Ends of the search, 10 Pa and 1000 bar in terms of y, far outside what a pump reaches.
_LOWEST = (10.0 / ATMOSPHERE) ** (1 / 7)
_HIGHEST = (1e8 / ATMOSPHERE) ** (1 / 7)
# A step below this fraction of y, 1e-5 of log p, ends the search.
_TOLERANCE = 1e-5 / 7
# Iterations of Newton's method before it has to be careful.
_PATIENCE = 8


class Orifices(NamedTuple):
    """Discharge coefficient x greatest area x sqrt(2 / density) of each way in or out: flow = that x sqrt(drop)."""

    inlet: jax.Array
    """[3, N]."""
    outlet: jax.Array
    """[N]."""
    leak: jax.Array
    """[N], cylinder 0 only."""


class Chambers(NamedTuple):
    """State of the chambers, [3, N] each."""

    contents: jax.Array
    """Volume of the fluid at atmospheric pressure."""
    y: jax.Array
    y_before: jax.Array
    """y one step ago."""


class Exchange(NamedTuple):
    """What the rest of the pump sees of a step, [3, N]; and how many iterations the slowest chamber took."""

    pressure: jax.Array
    inflow: jax.Array
    outflow: jax.Array
    iterations: jax.Array


class _Search(NamedTuple):
    y: jax.Array
    low: jax.Array
    high: jax.Array
    active: jax.Array
    iterations: jax.Array


class OpeningLine(Protocol):
    """What the valves need to know of a line: its pressure, and y and relative volume where they crack, [N]."""

    @property
    def pressure(self) -> jax.Array: ...
    @property
    def opens_at(self) -> jax.Array: ...
    @property
    def opens_with(self) -> jax.Array: ...


def valve(drop: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Flow / orifice of a check valve at a pressure drop of at least `CRACKING`, and its slope in the drop.

    s(d) sqrt(d) with the opening s rising from 0 at `CRACKING` to 1 at `FULLY_OPEN`.
    """
    inverse = lax.rsqrt(drop)
    root = drop * inverse
    opening = jnp.minimum((drop - CRACKING) / _OPENING_RANGE, 1.0)
    return opening * root, 0.5 * opening * inverse + jnp.where(opening < 1.0, root / _OPENING_RANGE, 0.0)


def leak(pressure: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Flow / orifice of the leak to the atmosphere and its slope in the pressure: d / (d^2 + 1e6)^(1/4), d = p - PA."""
    head = pressure - ATMOSPHERE
    root = lax.rsqrt(jnp.sqrt(head * head + _LEAK_SMOOTHING))
    square = root * root
    return head * root, root * (1.0 - 0.5 * (head * square) ** 2)


def advance(
    chambers: Chambers,
    volume: jax.Array,
    inlet: OpeningLine,
    outlet: OpeningLine,
    orifices: Orifices,
    step: float,
    limit: int,
) -> tuple[Chambers, Exchange]:
    """One implicit Euler step: find y with M + dt q(y) = V / g(y), then M += dt q.

    M is `Chambers.contents`, V the `volume` at the end of the step, g `fluid.relative_volume` and q the flow in through
    the valves and out through the leak, at the lines' pressures of the last step.

    q falls with y and 1 / g rises, so there is one root. Its regime (inlet open, both closed, outlet open) follows
    from the signs at the two cracking pressures, where no valve flows; inside a regime the residual is smooth but for
    a kink where the valve is fully open. `Exchange.iterations` is `limit` when the solution has not converged: the
    caller has to look.
    """
    contents = chambers.contents
    first = jnp.arange(3)[:, None] == 0

    def closed(opens_at: jax.Array, opens_with: jax.Array) -> jax.Array:
        lost = step * orifices.leak * leak(ATMOSPHERE * opens_at**7)[0]
        return (contents - jnp.where(first, lost, 0.0)) * opens_with - volume

    fills = closed(inlet.opens_at, inlet.opens_with) < 0
    delivers = closed(outlet.opens_at, outlet.opens_with) > 0
    low = jnp.where(fills, _LOWEST, jnp.where(delivers, outlet.opens_at, inlet.opens_at))
    high = jnp.where(fills, inlet.opens_at, jnp.where(delivers, _HIGHEST, outlet.opens_at))
    sign = jnp.where(fills, -1.0, 1.0)
    line = jnp.where(fills, inlet.pressure, outlet.pressure)
    orifice = jnp.where(fills, orifices.inlet, jnp.where(delivers, orifices.outlet, 0.0))

    def flows(pressure: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Through the open valve; out of the chamber; slope of the latter in the pressure."""
        flow, slope = valve(jnp.maximum(sign * (pressure - line), CRACKING))
        leak_flow, leak_slope = leak(pressure[0])
        out = sign * orifice * flow + jnp.where(first, orifices.leak * leak_flow, 0.0)
        return orifice * flow, out, orifice * slope + jnp.where(first, orifices.leak * leak_slope, 0.0)

    def newton(y: jax.Array) -> jax.Array:
        oil, air = OIL * y**7, AIR * (1.0 / y) ** 5
        pressure = ATMOSPHERE * y**7
        density = 1.0 / (air + (1.0 - AIR) - (oil - OIL))
        _, out, slope = flows(pressure)
        excess = contents - step * out - volume * density
        # -d(excess) / d(log y), positive everywhere.
        fall = volume * density**2 * (5.0 * air + 7.0 * oil) + 7.0 * step * slope * pressure
        return y + y * excess / fall

    y, y_before = chambers.y, chambers.y_before
    steady = (jnp.minimum(y, y_before) >= low) & (jnp.maximum(y, y_before) <= high)
    start = jnp.clip(jnp.where(steady, 2.0 * y - y_before, y), low, high)
    root, iterations = _solve(newton, start, low, high, limit)

    pressure = ATMOSPHERE * root**7
    through, out, _ = flows(pressure)
    inflow, outflow = jnp.where(fills, through, 0.0), jnp.where(fills, 0.0, through)
    return Chambers(contents - step * out, root, y), Exchange(pressure, inflow, outflow, iterations)


def _solve(
    newton: Callable[[jax.Array], jax.Array], start: jax.Array, low: jax.Array, high: jax.Array, limit: int
) -> tuple[jax.Array, jax.Array]:
    """Root of a falling function between `low` and `high`, elementwise, and the iterations that the slowest took.

    `newton` maps a point to the next one of Newton's method, which lies on the root's side of it. A step that leaves
    the bracket is replaced by a bisection. That alone may cycle between the two sides of a kink, so that from iteration
    `_PATIENCE` on long steps are bisections, too.
    """

    def iterate(search: _Search, careful: bool) -> _Search:
        y = search.y
        proposed = newton(y)
        low = jnp.where(proposed > y, y, search.low)
        high = jnp.where(proposed > y, search.high, y)
        # A root on the end of the bracket must not be bisected away, nor a NaN.
        rejected = (proposed < low - 1e-9) | (proposed > high + 1e-9)
        if careful:
            rejected |= jnp.abs(proposed - y) > 1e-3 * y
        proposed = jnp.where(rejected, 0.5 * (low + high), proposed)
        # An element that is done waits for the others unchanged, so that no run depends on its neighbours.
        proposed = jnp.where(search.active, proposed, y)
        # Written so that a NaN is never done.
        active = ~(jnp.abs(proposed - y) <= _TOLERANCE * y)
        return _Search(proposed, low, high, active, search.iterations + 1)

    def converge(search: _Search, limit: int, careful: bool) -> _Search:
        def unfinished(search: _Search) -> jax.Array:
            return jnp.any(search.active) & (search.iterations < limit)

        return lax.while_loop(unfinished, functools.partial(iterate, careful=careful), search)

    search = _Search(start, low, high, jnp.ones_like(start, dtype=bool), jnp.int32(0))
    search = converge(search, _PATIENCE, careful=False)
    search = converge(search, limit, careful=True)
    return search.y, search.iterations

"""One implicit step of the pump's chambers, against solutions built from the formulas and against bisection."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fedhedge.data.pump import chambers, fluid, lines
from fedhedge.data.pump.chambers import Chambers, Exchange, Orifices

ATMOSPHERE = 101325.0
STEP = 2e-4
LIMIT = 40
CHAMBERS = 20_000
ORIFICE = 0.7 * 1e-4 * np.sqrt(2 / 870)


def relative_volume(pressure: np.ndarray) -> np.ndarray:
    air = 0.005 * (ATMOSPHERE / pressure) ** (1 / 1.4)
    return np.asarray(air + 0.995 * (1 - (pressure - ATMOSPHERE) / 1.3e9))


def valve_flow(drop: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip((drop - 0.3e5) / 0.9e5, 0, 1) * np.sqrt(np.maximum(drop, 0)))


# Compiled once for all tests.
advance_compiled = jax.jit(chambers.advance, static_argnames=("step", "limit"))


class Case(NamedTuple):
    """A random state of many chambers, [3, n] and [n]."""

    volume: np.ndarray
    inlet: np.ndarray
    outlet: np.ndarray
    orifices: Orifices

    def flows(self, pressure: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        head = pressure - ATMOSPHERE
        leak = np.asarray(self.orifices.leak) * head / (head**2 + 1e6) ** 0.25
        leak[1:] = 0.0
        inflow = np.asarray(self.orifices.inlet) * valve_flow(self.inlet - pressure)
        return inflow, np.asarray(self.orifices.outlet) * valve_flow(pressure - self.outlet), leak

    def excess(self, contents: np.ndarray, pressure: np.ndarray) -> np.ndarray:
        inflow, outflow, leak = self.flows(pressure)
        return np.asarray(contents + STEP * (inflow - outflow - leak) - self.volume / relative_volume(pressure))


def random_case(rng: np.random.Generator, n: int) -> Case:
    """Lines, openings and leaks over more than what runs with the widest spread and shifts can meet."""
    areas = ORIFICE * rng.uniform(0.4, 1.6, n)
    inlet = areas * np.where(np.arange(3)[:, None] == 0, rng.uniform(0.5, 0.8, n), 1.0)
    leak = 0.7 * np.sqrt(2 / 870) * 10 ** rng.uniform(-9, -5, n)
    return Case(
        rng.uniform(8e-6, 2.2e-5, (3, n)),
        ATMOSPHERE * rng.uniform(0.2, 1.2, n),
        ATMOSPHERE + rng.uniform(2e5, 12e5, n),
        Orifices(inlet, areas, leak),
    )


def advance(case: Case, contents: np.ndarray, guess: np.ndarray, before: np.ndarray) -> tuple[Chambers, Exchange]:
    with jax.enable_x64(True):
        to_y = fluid.from_pressure
        state = Chambers(jnp.asarray(contents), to_y(jnp.asarray(guess)), to_y(jnp.asarray(before)))
        inlet, outlet = lines.inlet(jnp.asarray(case.inlet)), lines.outlet(jnp.asarray(case.outlet))
        orifices = Orifices(*map(jnp.asarray, case.orifices))
        result: tuple[Chambers, Exchange] = advance_compiled(
            state, jnp.asarray(case.volume), inlet, outlet, orifices, step=STEP, limit=LIMIT
        )
        return result


def pressures(rng: np.random.Generator, case: Case) -> np.ndarray:
    """Near the valves' corners and anywhere between 1 kPa and some bar above the outlet line."""
    shape = case.volume.shape
    free = np.exp(rng.uniform(np.log(1e3), np.log(2e6), shape))
    near_outlet = case.outlet + rng.uniform(0, 2e5, shape)
    near_inlet = np.maximum(case.inlet - rng.uniform(0, 2e5, shape), 1e3)
    return np.choose(rng.integers(0, 3, shape), [free, near_outlet, near_inlet])


def test_the_root_is_found_from_any_start_in_every_regime() -> None:
    rng = np.random.default_rng(1)
    case = random_case(rng, CHAMBERS)
    root = pressures(rng, case)
    inflow, outflow, leak = case.flows(root)
    contents = case.volume / relative_volume(root) - STEP * (inflow - outflow - leak)
    positive = contents > 0.1 * case.volume
    contents = np.where(positive, contents, case.volume)
    state, exchange = advance(case, contents, pressures(rng, case), pressures(rng, case))

    assert positive.mean() > 0.8
    assert min((inflow > 0).mean(), (outflow > 0).mean(), ((inflow == 0) & (outflow == 0)).mean()) > 0.1
    assert int(exchange.iterations) < LIMIT
    found = np.asarray(exchange.pressure)
    np.testing.assert_allclose(found[positive], root[positive], rtol=1e-7)
    scale = 1e-7 * ORIFICE * 1e3
    np.testing.assert_allclose(np.asarray(exchange.inflow)[positive], inflow[positive], atol=scale)
    np.testing.assert_allclose(np.asarray(exchange.outflow)[positive], outflow[positive], atol=scale)
    # What the chamber holds afterwards fills its volume at the pressure found.
    np.testing.assert_allclose(np.asarray(state.contents), case.volume / relative_volume(found), rtol=1e-9)


def test_the_root_agrees_with_bisection() -> None:
    rng = np.random.default_rng(2)
    case = random_case(rng, CHAMBERS)
    contents = case.volume * rng.uniform(0.9, 1.02, case.volume.shape)
    _, exchange = advance(case, contents, pressures(rng, case), pressures(rng, case))
    low, high = np.full(contents.shape, np.log(10.0)), np.full(contents.shape, np.log(1e8))
    for _ in range(50):
        middle = 0.5 * (low + high)
        below_root = case.excess(contents, np.exp(middle)) > 0
        low, high = np.where(below_root, middle, low), np.where(below_root, high, middle)
    np.testing.assert_allclose(exchange.pressure, np.exp(low), rtol=1e-7)


def test_valve_and_leak_flows_and_their_slopes() -> None:
    drop = np.array([0.3e5, 0.31e5, 0.7e5, 1.199e5, 1.2e5 + 1, 3e5])
    pressure = ATMOSPHERE + np.array([-9e4, -500.0, 0.0, 10.0, 5e3, 8e5])
    with jax.enable_x64(True):
        flow, slope = chambers.valve(jnp.asarray(drop))
        np.testing.assert_allclose(flow, valve_flow(drop), rtol=1e-12, atol=1e-12)
        # From the right: at the cracking pressure the valve has a corner.
        np.testing.assert_allclose(slope, (valve_flow(drop + 0.01) - valve_flow(drop)) / 0.01, rtol=1e-5)
        leak, leak_slope = chambers.leak(jnp.asarray(pressure))
        head = pressure - ATMOSPHERE
        np.testing.assert_allclose(leak, head / (head**2 + 1e6) ** 0.25, rtol=1e-12)
        above, below = chambers.leak(jnp.asarray(pressure + 1.0))[0], chambers.leak(jnp.asarray(pressure - 1.0))[0]
        np.testing.assert_allclose(leak_slope, (above - below) / 2, rtol=1e-4)


def test_the_fluid_laws() -> None:
    pressure = np.geomspace(1e3, 1e7, 50)
    with jax.enable_x64(True):
        y = fluid.from_pressure(jnp.asarray(pressure))
        np.testing.assert_allclose(y**7 * ATMOSPHERE, pressure, rtol=1e-12)
        np.testing.assert_allclose(fluid.relative_volume(y), relative_volume(pressure), rtol=1e-12)
        # A fixed volume V takes in V (1/E - d(air)/dp) for each Pa.
        air = 0.005 * (ATMOSPHERE / np.stack([pressure * 1.0001, pressure * 0.9999])) ** (1 / 1.4)
        expected = 0.003 * (1 / 1.3e9 - (air[0] - air[1]) / (2e-4 * pressure))
        np.testing.assert_allclose(fluid.capacity(0.003, jnp.asarray(pressure)), expected, rtol=1e-6)


def test_a_chamber_without_a_solution_counts_as_not_converged() -> None:
    case = random_case(np.random.default_rng(3), CHAMBERS)
    contents = np.full(case.volume.shape, 1e-5)
    guess = np.full(case.volume.shape, 2e5)
    assert int(advance(case, contents, guess, guess)[1].iterations) < LIMIT
    contents[1, 2] = np.nan
    assert int(advance(case, contents, guess, guess)[1].iterations) == LIMIT

"""The simulated pump against a prototype of its own, a stiff solver and mechanics done by hand."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from fedhedge.data.pump import Plant, Traces, physics, simulate

# Mean and standard deviation of the flow in l/min and speed in rpm, over the last 1.2 of 2 s from rest at angle 0,
# of an earlier program for the same equations: healthy, blocked to 0.65 and 0.53, leak of 3.6e-6 m2, bearing fault.
REFERENCES = np.array(
    [
        (38.519, 3.042, 958.5),
        (37.876, 4.088, 959.8),
        (36.933, 6.352, 961.4),
        (35.832, 4.255, 958.7),
        (37.141, 2.845, 921.7),
    ]
)
PLANTS = Plant(
    leak_area=np.array([1e-9, 1e-9, 1e-9, 3.6e-6, 1e-9]),
    inlet_opening=np.array([0.8, 0.65, 0.53, 0.8, 0.8]),
    friction=np.degrees([1e-4, 1e-4, 1e-4, 1e-4, 7e-4]),
)


def one(plant: Plant, run: int) -> Plant:
    return Plant(*(np.broadcast_to(value, 5)[run : run + 1] for value in plant))


@pytest.fixture(scope="module")
def from_rest() -> Traces:
    return simulate(PLANTS, np.zeros(5), from_rest=True)


def test_the_reference_runs(from_rest: Traces) -> None:
    assert from_rest.flow.shape == from_rest.speed.shape == (5, 1200)
    found = np.stack([from_rest.flow.mean(axis=1), from_rest.flow.std(axis=1), from_rest.speed.mean(axis=1)], axis=1)
    np.testing.assert_allclose(found, REFERENCES, rtol=0.01)


def test_flow_extremes_of_the_published_plots(from_rest: Traces) -> None:
    # Read off plots of another simulator of this pump: healthy 31.7 to 41.8, leak dips to 25.5, blocked to about 5.
    assert from_rest.flow[0].min() == pytest.approx(31.7, abs=2.0)
    assert from_rest.flow[0].max() == pytest.approx(41.8, abs=1.0)
    assert from_rest.flow[3].min() == pytest.approx(25.5, abs=1.0)
    assert from_rest.flow[2].min() < 10.0


def test_the_pump_moves_what_its_plungers_displace(from_rest: Traces) -> None:
    """Flow = displacement less compression: what the dead volume and the oil lose between the two line pressures."""
    swept = 3 * physics.PLUNGER_AREA * 0.03
    turns = from_rest.speed[0].mean() / 60
    # 0.5 % of air shrinks by (pa/p)^(1/1.4) - 1 = 76 % at the 8 bar of the outlet, oil by 7e5 / 1.3e9.
    shrinking = 0.005 * 0.76 + 7e5 / 1.3e9
    lost = 3 * shrinking * (8e-6 + physics.PLUNGER_AREA * 0.03)
    assert from_rest.flow[0].mean() == pytest.approx(6e4 * turns * (swept - lost), rel=0.01)


def test_a_run_does_not_depend_on_its_neighbours(from_rest: Traces) -> None:
    order = np.array([3, 4, 0, 2, 1])
    moved = simulate(Plant(*(np.broadcast_to(value, 5)[order] for value in PLANTS)), np.zeros(5), from_rest=True)
    np.testing.assert_array_equal(moved.flow, from_rest.flow[order])
    np.testing.assert_array_equal(moved.speed, from_rest.speed[order])


def test_both_starts_end_in_the_same_motion(from_rest: Traces) -> None:
    # Within 2 %: the integrator of the drive is still moving slowly.
    running = simulate(PLANTS, np.zeros(5))
    np.testing.assert_allclose(running.flow.mean(axis=1), from_rest.flow.mean(axis=1), rtol=0.02)
    np.testing.assert_allclose(running.flow.std(axis=1), from_rest.flow.std(axis=1), rtol=0.02)
    np.testing.assert_allclose(running.speed.mean(axis=1), from_rest.speed.mean(axis=1), rtol=0.02)


def test_pressures_that_do_not_converge_are_an_error(from_rest: Traces) -> None:
    with pytest.raises(RuntimeError, match="pump: the chamber pressures did not converge within 3 iterations"):
        simulate(PLANTS, np.zeros(5), from_rest=True, limit=3)
    with pytest.raises(RuntimeError, match="did not converge"):
        simulate(PLANTS._replace(viscosity=np.array([1e-4, 1e-4, np.nan, 1e-4, 1e-4])), np.zeros(5), from_rest=True)


def test_jax_keeps_its_precision(from_rest: Traces) -> None:
    assert from_rest.flow.dtype == np.float64
    assert jnp.zeros(1).dtype == jnp.float32


def test_the_crank() -> None:
    angle = np.linspace(0.0, 2 * np.pi, 13)
    with jax.enable_x64(True):
        volume, lever = physics._plungers(jnp.sin(jnp.asarray(angle)), jnp.cos(jnp.asarray(angle)))
        turned = physics._turn(jnp.sin(jnp.asarray(angle)), jnp.cos(jnp.asarray(angle)), jnp.asarray(0.04))
    np.testing.assert_allclose(turned, [np.sin(angle + 0.04), np.cos(angle + 0.04)], atol=1e-15)

    def depth(angle: np.ndarray) -> np.ndarray:
        """Way of the plunger from the distance between its pin and the crank's axis."""
        pin = 0.015 * np.cos(angle) + np.sqrt(0.0725**2 - (0.015 * np.sin(angle)) ** 2)
        return np.asarray(0.015 + 0.0725 - pin)

    phases = angle + 2 * np.pi / 3 * np.arange(3)[:, None]
    np.testing.assert_allclose(volume, 8e-6 + np.pi * 0.012**2 * depth(phases), rtol=1e-12)
    np.testing.assert_allclose(lever, (depth(phases + 1e-6) - depth(phases - 1e-6)) / 2e-6, atol=1e-9)


def stiff_run(plant: Plant) -> np.ndarray:
    """Flow (l/min) every ms of the last 1.2 of 1.5 s, from the continuous equations, by BDF."""
    load, set_point, viscosity, valve_area, leak_area, inlet_opening, friction = (
        np.asarray(value).item() for value in plant
    )
    pa, rho, bulk, air, cd = 101325.0, 870.0, 1.3e9, 0.005, 0.7
    area, pipe_volume = math.pi * 0.012**2, 5 * math.pi * 0.015**2
    pipe = 128 * viscosity * rho * 5 / (math.pi * 0.03**4)
    bend = rho / 2 / (cd * 2e-4) ** 2

    def compliance(pressure: float) -> float:
        return float(1 / bulk + air * (pa / pressure) ** (1 / 1.4) / (1.4 * pressure))

    def valve(drop: float) -> float:
        return float(cd * valve_area * min(max((drop - 0.3e5) / 0.9e5, 0), 1) * math.sqrt(max(2 * drop / rho, 0)))

    def slope(_: float, state: np.ndarray) -> list[float]:
        angle, speed, torque, integral, measured, inlet, outlet = state[:7]
        drawn = pushed = inertia = 0.0
        turning = 2 * torque - friction * speed
        chambers = []
        for i, logarithm in enumerate(state[7:]):
            pressure = math.exp(logarithm)
            phi = angle + 2 * math.pi * i / 3
            w = math.sqrt(1 - (0.015 / 0.0725 * math.sin(phi)) ** 2)
            volume = 8e-6 + area * (0.015 * (1 - math.cos(phi)) + 0.0725 * (1 - w))
            lever = 0.015 * math.sin(phi) * (1 + 0.015 / 0.0725 * math.cos(phi) / w)
            head = pressure - pa
            lost = cd * leak_area * math.sqrt(2 / rho) * head / (head**2 + 1e6) ** 0.25 if i == 0 else 0.0
            into = valve(inlet - pressure) * (inlet_opening if i == 0 else 1)
            out = valve(pressure - outlet)
            relative = air * (pa / pressure) ** (1 / 1.4) + (1 - air) * (1 - head / bulk)
            stiffness = air * (pa / pressure) ** (1 / 1.4) / 1.4 + (1 - air) * pressure / bulk
            # d/dt of volume = contents x relative volume, contents = volume / relative volume.
            chambers.append(((into - out - lost) * relative - area * lever * speed) / (volume / relative * stiffness))
            drawn, pushed = drawn + into, pushed + out
            inertia += 0.4 * lever**2
            rubbing = 0.2 * math.tanh(speed * lever / 0.01) + 0.1 * speed * lever
            turning += (head * area - rubbing) * lever
        head = outlet - pa - load
        through = math.copysign((math.sqrt(pipe**2 + 4 * bend * abs(head)) - pipe) / (2 * bend), head)
        rpm, error = speed * 30 / math.pi, set_point - measured
        return [
            speed,
            turning / (7e-3 + inertia),
            (min(max(integral + 0.04 * error, -5), 5) - torque) / 0.02,
            0.002 * error,
            (rpm - measured) * 2 * math.pi * 200,
            ((pa - inlet) / pipe - drawn) / ((pipe_volume + 2e-4) * compliance(inlet)),
            (pushed - through) / ((pipe_volume + 3e-4) * compliance(outlet)),
            *chambers,
        ]

    start = [0.0, 100.0, 3.0, 0.2, 3000 / math.pi, pa, pa + load, *[math.log(pa)] * 3]
    solution = solve_ivp(slope, (0, 1.5), start, "BDF", np.arange(301, 1501) / 1000, rtol=1e-6, atol=1e-9)
    assert solution.success
    return np.array([6e4 * sum(valve(math.exp(p) - y[6]) for p in y[7:]) for y in solution.y.T])


@pytest.mark.slow
@pytest.mark.parametrize("run", [0, 2, 3, 4])
def test_a_stiff_solver_of_the_continuous_equations_agrees(run: int) -> None:
    plant = one(PLANTS, run)
    flow = simulate(plant, np.zeros(1)).flow[0]
    expected = stiff_run(plant)
    assert flow.mean() == pytest.approx(expected.mean(), rel=3e-3)
    assert flow.std() == pytest.approx(expected.std(), rel=1.5e-2)
    # They also keep in step; without, the difference would be 1.4 times the swing.
    assert np.sqrt(np.mean((flow - expected) ** 2)) < 0.25 * expected.std()

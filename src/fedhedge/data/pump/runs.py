"""Random pump runs with their faults and their unit-to-unit spread, and the data set made of them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from fedhedge import checks, streams
from fedhedge.checks import InvalidInput
from fedhedge.data.pump import features as indicators
from fedhedge.data.pump.physics import SAMPLES, Plant, simulate
from fedhedge.data.source import Dataset

CLASSES = ("healthy", "seal leak", "blocked inlet", "bearing friction")
HEALTHY, LEAK, BLOCKED, BEARING = range(4)
LEAK_AREA = 3.6e-6
BLOCKING = 0.27
BEARING_FRICTION = 6 * Plant().friction
FLOW_NOISE = 1.0
# Relative standard deviations between units: load pressure, speed set point, viscosity, area of all valves.
SPREAD = {"load": 0.03, "speed": 0.01, "viscosity": 0.10, "valves": 0.02}
# Runs are simulated in blocks of this many, so that a run sits at the same place whatever is asked for.
BLOCK = 128


class Runs(NamedTuple):
    """What is random about runs, one a row."""

    label: np.ndarray
    """Index into `CLASSES`, int32 [n]."""
    severity: np.ndarray
    """Of the fault, float64 [n], 0 for a healthy pump."""
    angle: np.ndarray
    """Of the crank at the start, rad, float64 [n]."""
    plant: Plant
    noise: np.ndarray
    """Of the flow sensor, litres a minute, float64 [n, 1200]."""


def draw_runs(
    runs: int,
    *,
    first: int = 0,
    severity: tuple[float, float] = (0.0, 1.0),
    seed: int = 0,
    spread: float = 1.0,
    leak_area: float = LEAK_AREA,
    site: Mapping[str, float] | None = None,
) -> Runs:
    """Draw what is random about the runs `first`, `first + 1`, ...; the arguments are those of `load_pump`.

    Run i has class i mod 4 and its own random stream, (source, i).
    """
    low, high = _severity(severity)
    streams.check_seed(seed)
    checks.integer("runs", runs, low=1)
    checks.integer("first", first, low=0)
    spread = checks.number("spread", spread, low=0.0, high=2.0)
    leak_area = checks.number("leak_area", leak_area, above=0.0, high=1e-5)
    shift = 1.0 + np.array(list(_site(site).values()))

    index = np.arange(first, first + runs)
    uniform, unit, noise = np.empty((runs, 2)), np.empty((runs, len(SPREAD))), np.empty((runs, SAMPLES))
    for row, i in enumerate(index):
        rng = streams.generator(seed, streams.Purpose.SOURCE, client=int(i))
        uniform[row], unit[row], noise[row] = rng.random(2), rng.normal(size=4), rng.normal(size=SAMPLES)

    label = (index % len(CLASSES)).astype(np.int32)
    strength = np.where(label == HEALTHY, 0.0, high - (high - low) * uniform[:, 0])
    # Cut at four standard deviations: a rare draw must not turn a physical constant negative.
    factor = 1.0 + spread * np.clip(unit, -4.0, 4.0) * np.array(list(SPREAD.values()))
    load, speed, viscosity, valves = (factor * shift).T
    nominal = Plant()
    plant = Plant(
        load=nominal.load * load,
        set_point=nominal.set_point * speed,
        viscosity=nominal.viscosity * viscosity,
        valve_area=nominal.valve_area * valves,
        # A leak is never tighter than a healthy seal.
        leak_area=np.maximum(nominal.leak_area, np.where(label == LEAK, leak_area * strength, 0.0)),
        inlet_opening=nominal.inlet_opening - np.where(label == BLOCKED, BLOCKING * strength, 0.0),
        friction=nominal.friction + np.where(label == BEARING, BEARING_FRICTION * strength, 0.0),
    )
    return Runs(label, strength, 2.0 * np.pi * uniform[:, 1], plant, FLOW_NOISE * noise)


def load_pump(
    runs: int = 2000,
    *,
    severity: tuple[float, float] = (0.0, 1.0),
    seed: int = 0,
    spread: float = 1.0,
    leak_area: float = LEAK_AREA,
    features: Iterable[str] | None = None,
    site: Mapping[str, float] | None = None,
) -> Dataset:
    """Simulated condition monitoring of a triplex pump: features of its outlet flow, healthy and with three faults.

    The classes (equal shares) are healthy, a seal leak in cylinder 0 of up to `leak_area` m2, a blocked inlet of
    cylinder 0 down to 53 % of the valve's area (80 % is healthy), and bearing friction of up to 6e-4 N m s/deg. The
    fault grows with a severity that is uniform within `severity`, a pair 0 <= low <= high <= 1.

    Units differ by normal relative errors of load pressure (3 %), speed set point (1 %), viscosity (10 %) and valve
    areas (2 %), all times `spread` in [0, 2]. `site` shifts their means by relative amounts in [-0.5, 0.5], any of
    "load", "speed", "viscosity" and "valves": sites with different shifts (and seeds) are clients that differ by
    nature. The flow sensor's noise has a standard deviation of 1 l/min. `features` names columns among `FEATURES`; by
    default all but pKurtosis.

    Run i is the same whatever `runs` is. `draw_runs` with the same arguments tells the severities.
    Raises InvalidInput, before anything is simulated.
    """
    names = indicators.check_names(features)
    checks.integer("runs", runs, low=len(CLASSES))
    draw = functools.partial(
        draw_runs, BLOCK, severity=severity, seed=seed, spread=spread, leak_area=leak_area, site=site
    )
    tables, labels = [], []
    for first in range(0, runs, BLOCK):
        block = draw(first=first)
        kept = min(BLOCK, runs - first)
        flow = simulate(block.plant, block.angle).flow + block.noise
        tables.append(indicators.compute(flow[:kept], names))
        labels.append(block.label[:kept])
    return Dataset(
        "pump",
        np.concatenate(tables),
        np.concatenate(labels),
        classes=CLASSES,
        feature_names=names,
        description={
            "severity": list(_severity(severity)),
            "seed": seed,
            "spread": float(spread),
            "leak_area": float(leak_area),
            "site": _site(site),
        },
    )


def _severity(severity: tuple[float, float]) -> tuple[float, float]:
    allowed = "a pair 0 <= low <= high <= 1 with high above 0"
    try:
        low, high = severity
    except (TypeError, ValueError):
        raise InvalidInput("severity", severity, allowed) from None
    low = checks.number("severity", low, low=0.0, high=1.0)
    high = checks.number("severity", high, above=0.0, high=1.0)
    if low > high:
        raise InvalidInput("severity", severity, allowed)
    return low, high


def _site(site: Mapping[str, float] | None) -> dict[str, float]:
    """Shift of each of the spread's names, 0 where `site` has none."""
    if site is not None and not isinstance(site, Mapping):
        raise InvalidInput("site", site, f"a mapping of {', '.join(SPREAD)} to relative shifts")
    given = {checks.one_of("site", name, SPREAD): value for name, value in (site or {}).items()}
    return {name: checks.number(f"site.{name}", given.get(name, 0.0), low=-0.5, high=0.5) for name in SPREAD}

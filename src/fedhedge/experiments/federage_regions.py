"""Decision regions of models in the plane, with the points that they are to tell apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedhedge.data import Clients
from fedhedge.report.plot import Plot
from fedhedge.report.style import MUTED, SERIES, WIDTH
from fedhedge.simulation import Run

_GRID = 81


def regions(name: str, runs: Mapping[str, Run], clients: Clients, rare: Sequence[int]) -> Plot:
    """A panel for each run: where its last model says which class, and the test rows; rare clients are triangles."""
    side, gap, top, edge = 1.98, 0.1, 0.28, 0.07
    lines = -(-len(runs) // 2)
    height = lines * (side + top) + gap
    made = Figure(figsize=(WIDTH, height))
    for k, (label, run) in enumerate(runs.items()):
        left, bottom = edge + (k % 2) * (side + gap), height - (k // 2 + 1) * (side + top)
        axes = made.add_axes((left / WIDTH, bottom / height, side / WIDTH, side / height))
        _draw(axes, run, clients, rare)
        axes.set_title(label, pad=4.0)
    said = [f"{label} {', '.join(f'{100 * value:.0f}' for value in run.clients())}" for label, run in runs.items()]
    alt = f"Regions of five classes. Test accuracy of the clients in percent: {'; '.join(said)}."
    some = next(iter(runs.values()))
    return Plot(
        name,
        alt,
        f"Seed {some.settings['seed']}, model of the last round ({some.counts['rounds']}). Triangles: test rows of the "
        f"rare clients.",
        made,
    )


def _draw(axes: Axes, run: Run, clients: Clients, rare: Sequence[int]) -> None:
    features, labels = clients.rows("test")
    limit = 1.08 * float(np.abs(features).max())
    ticks = np.linspace(-limit, limit, _GRID)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1)
    margins = _margins(run, grid.reshape(-1, 2)).reshape(-1, _GRID, _GRID)
    start, stop = clients.offsets("test")[:-1], clients.offsets("test")[1:]
    for number, margin in enumerate(margins):
        if margin.max() > 0.0:
            axes.contourf(ticks, ticks, margin, levels=[0.0, margin.max()], colors=[SERIES[number]], alpha=0.22)
    for client in range(len(clients)):
        own = slice(start[client], stop[client])
        number = int(labels[own][0])
        axes.scatter(
            features[own, 0],
            features[own, 1],
            s=11 if client in rare else 7,
            color=SERIES[number],
            marker="^" if client in rare else "o",
            linewidths=0,
        )
    axes.set(xlim=(-limit, limit), ylim=(-limit, limit), xticks=[], yticks=[], aspect="equal")
    for spine in axes.spines.values():
        spine.set(visible=True, color=MUTED)


def _margins(run: Run, points: np.ndarray) -> np.ndarray:
    """How far each class is ahead of the best other one, in logarithms of probability, [classes, points]."""
    x = jnp.asarray(points, jnp.float32)
    ones = jnp.ones(len(x), jnp.int32)
    losses = np.stack([run.model.loss(run.params, x, k * ones) for k in range(len(run.classes))])
    others = [np.delete(losses, k, axis=0).min(axis=0) for k in range(len(losses))]
    ahead: np.ndarray = np.asarray(others) - losses
    return ahead

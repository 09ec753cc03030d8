"""Methods that descend along a direction: they give the rule of one step, this file owns the loop."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import Algorithm, Batches, Cohort, Start, Tree, over_cohort, weighted_mean
from fedhedge.models.base import Functional


@dataclasses.dataclass(frozen=True)
class FirstOrder(Algorithm):
    """Local loop  point <- Proj(point - rates * direction)  for H steps, then the mean of the uploads.

    A subclass gives `direction`. A method with more than model parameters to move (FedeRage's scalar) says how
    its point starts, which part of it the model reads, and the rates of its parts.
    step: local step size eta. ball: radius of the l2 ball C that model parameters are projected on (None: none).
    """

    step: float = 0.1
    ball: float | None = None

    def __post_init__(self) -> None:
        checks.number("step", self.step, low=0.0)
        if self.ball is not None:
            checks.number("ball", self.ball, above=0.0)

    @abstractmethod
    def direction(self, loss: jax.Array, gradient: Tree, point: Tree, down: Tree, client: Tree) -> Tree:
        """The direction of one local step, from the mini-batch loss and gradient at `point`, before the step."""

    def rates(self) -> Tree:
        """Step sizes, as a prefix of the point's tree."""
        return self.step

    def start(self, down: Tree) -> Tree:
        """The point at which a client starts its local steps."""
        return down

    def origin(self, down: Tree, client: Tree) -> Tree:
        """The start of one client, for methods whose clients do not all start alike."""
        return self.start(down)

    def project(self, point: Tree, down: Tree) -> Tree:
        """Projection on the feasible set."""
        return project_ball(point, self.ball)

    def observe(self, loss: jax.Array, point: Tree) -> dict[str, jax.Array]:
        """Scalars of one local step, before it is taken; the history holds their means."""
        return {"local_loss": loss}

    def finish(self, point: Tree, down: Tree, client: Tree, steps: jax.Array) -> tuple[Tree, Tree]:
        """(upload, new client state) after `steps` local steps."""
        return point, client

    def init_server(self, start: Start) -> Tree:
        return start.params

    def broadcast(self, server: Tree) -> Tree:
        return server

    def with_iterate(self, server: Tree, iterate: Tree) -> Tree:
        """The server state with another iterate."""
        return iterate

    def with_parameters(self, iterate: Tree, params: Tree) -> Tree:
        """The iterate with other model parameters."""
        return params

    def aggregate(self, server: Tree, up: Tree, cohort: Cohort) -> Tree:
        return self.with_iterate(server, weighted_mean(cohort.weights, up))

    def local(
        self, model: Functional, down: Tree, clients: Tree, batches: Batches, keys: jax.Array
    ) -> tuple[Tree, Tree, dict[str, jax.Array]]:
        def objective(params: Tree, rows: jax.Array, present: jax.Array | None) -> jax.Array:
            losses = model.loss(params, batches.features[rows], batches.labels[rows])
            return losses.mean() if present is None else jnp.sum(losses * present) / jnp.sum(present)

        def work(client: Tree, index: jax.Array, present: jax.Array | None, steps: jax.Array) -> Any:
            def one(point: Tree, item: Any) -> tuple[Tree, dict[str, jax.Array]]:
                number, rows, there = item
                loss, gradient = jax.value_and_grad(objective)(self.parameters(point), rows, there)
                seen = self.observe(loss, point)
                direction = self.direction(loss, gradient, point, down, client)
                moved = self.project(descend(point, self.rates(), direction), down)
                if not batches.uniform_steps:
                    due = number < steps
                    moved = jax.tree.map(lambda new, old: jnp.where(due, new, old), moved, point)
                    seen = {name: jnp.where(due, value, 0.0) for name, value in seen.items()}
                return moved, seen

            numbers = jnp.arange(index.shape[0])
            origin = self.origin(down, client)
            point, seen = jax.lax.scan(one, origin, (numbers, index, present), unroll=batches.layout.unroll)
            up, client = self.finish(point, down, client, steps)
            return up, client, {name: jnp.sum(value) for name, value in seen.items()}

        arguments = (clients, batches.index, batches.present, batches.steps)
        return over_cohort(work, arguments, batches.steps > 0, batches.layout)  # type: ignore[no-any-return]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Stepped:
    """Uploads with the number of local steps behind them, which costs a scalar only where clients' steps differ.

    content: the uploads, [S, ...]. own: steps of each client [S], None when all take `common` steps.
    """

    content: Tree
    own: jax.Array | None
    common: int = dataclasses.field(metadata={"static": True})

    @classmethod
    def of(cls, content: Tree, batches: Batches) -> Stepped:
        """Uploads of the cohort whose mini-batches these are."""
        return cls(content, None if batches.uniform_steps else batches.steps, batches.index.shape[1])

    @property
    def steps(self) -> jax.Array:
        """Local steps, [S] or a scalar, at least 1 also for an empty slot."""
        return jnp.asarray(float(self.common)) if self.own is None else jnp.maximum(self.own, 1).astype(float)


def descend(point: Tree, rates: Tree, direction: Tree) -> Tree:
    """point - rates * direction, where `rates` may be a prefix of the other two trees."""

    def part(rate: jax.Array, value: Tree, slope: Tree) -> Tree:
        return jax.tree.map(lambda x, d: x - rate * d, value, slope)

    return jax.tree.map(part, rates, point, direction)


def over_rates(change: Tree, rates: Tree, steps: float | jax.Array = 1.0) -> Tree:
    """change / (steps * rates), where `rates` may be a prefix of the other tree."""

    def part(rate: jax.Array, move: Tree) -> Tree:
        scale = 1.0 / (steps * rate)
        return jax.tree.map(lambda d: scale * d, move)

    return jax.tree.map(part, rates, change)


def project_ball(params: Tree, radius: float | jax.Array | None) -> Tree:
    """Projection of all parameters, as one vector, on the l2 ball of `radius` round 0; None leaves them alone."""
    if radius is None:
        return params
    norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(params)))
    shrink = radius / jnp.maximum(norm, radius)
    return jax.tree.map(lambda leaf: leaf * shrink, params)

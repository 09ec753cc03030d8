"""Methods around another method: local work is the base's, and the server does something of its own with it."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax

from fedhedge import checks
from fedhedge.algorithms.base import Algorithm, Batches, Cohort, Start, Tree
from fedhedge.algorithms.fedavg import FedAvg
from fedhedge.algorithms.first_order import FirstOrder
from fedhedge.models.base import Functional


class Wrapped(NamedTuple):
    """Server state of a wrapper: that of its base, and its own."""

    base: Tree
    own: Tree


@dataclasses.dataclass(frozen=True)
class Wrapper(Algorithm):
    """A method that hands everything on to `base`; a subclass says what differs.

    Raises InvalidInput unless `base` is a first-order method, or a wrapper of one.
    """

    base: Algorithm = dataclasses.field(default=FedAvg())

    def __post_init__(self) -> None:
        checks.instance("base", self.base, Algorithm, "a method, such as FedAvg(step=0.1)")
        if not isinstance(self.base, FirstOrder | Wrapper):
            reason = f"the server of {self.base.name} solves a consensus problem, in which a round has no weights"
            raise checks.InvalidInput(
                "base", self.base.name, "a first-order method, such as FedAvg or FedeRage", reason
            )

    def init_own(self, start: Start) -> Tree:
        """The server state that the wrapper adds to its base's."""
        return ()

    @property
    def probes(self) -> bool:
        return type(self).probe is not Wrapper.probe or self.base.probes

    @property
    def weighs(self) -> bool:
        return self.probes or type(self).weigh is not Wrapper.weigh or self.base.weighs

    def init_server(self, start: Start) -> Wrapped:
        return Wrapped(self.base.init_server(start), self.init_own(start))

    def init_clients(self, clients: int, server: Wrapped) -> Tree:
        return self.base.init_clients(clients, server.base)

    def inquire(self, server: Wrapped) -> Tree:
        return self.base.inquire(server.base)

    def probe(self, model: Functional, down: Tree, clients: Tree, batches: Batches, keys: jax.Array) -> Tree:
        return self.base.probe(model, down, clients, batches, keys)

    def prepare(self, clients: Tree, seen: Tree) -> Tree:
        return self.base.prepare(clients, seen)

    def weigh(self, server: Wrapped, seen: Tree, cohort: Cohort, key: jax.Array) -> tuple[Wrapped, jax.Array]:
        base, weights = self.base.weigh(server.base, seen, cohort, key)
        return Wrapped(base, server.own), weights

    def broadcast(self, server: Wrapped) -> Tree:
        return self.base.broadcast(server.base)

    def start(self, down: Tree) -> Tree:
        """The point at which a client starts its local steps, as in `FirstOrder`."""
        return self.base.start(down)  # type: ignore[attr-defined]

    def local(
        self, model: Functional, down: Tree, clients: Tree, batches: Batches, keys: jax.Array
    ) -> tuple[Tree, Tree, dict[str, jax.Array]]:
        return self.base.local(model, down, clients, batches, keys)

    def aggregate(self, server: Wrapped, up: Tree, cohort: Cohort) -> Wrapped:
        return Wrapped(self.base.aggregate(server.base, up, cohort), server.own)

    def scalars(self, up: Tree) -> int:
        return self.base.scalars(up)

    def iterate(self, server: Wrapped) -> Tree:
        return self.base.iterate(server.base)

    def parameters(self, iterate: Tree) -> Tree:
        return self.base.parameters(iterate)

    @property
    def ends_early(self) -> bool:
        return type(self).finished is not Wrapper.finished or self.base.ends_early

    def finished(self, server: Wrapped) -> jax.Array | bool:
        return self.base.finished(server.base)

    def diagnostics(self, server: Wrapped) -> dict[str, jax.Array]:
        return self.base.diagnostics(server.base)

    def warnings(self, model: Functional, start: Start, rounds: int, local_steps: int) -> list[str]:
        return self.base.warnings(model, start, rounds, local_steps)

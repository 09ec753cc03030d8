"""What methods share that give the clients of a round weights of their own, around any method that averages."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from fedhedge import checks
from fedhedge.algorithms.base import Algorithm, Batches, Cohort, Tree, over_cohort
from fedhedge.algorithms.first_order import FirstOrder
from fedhedge.algorithms.wrapper import Wrapped, Wrapper
from fedhedge.availability.base import Law
from fedhedge.models.base import Functional

AVERAGES = "a method whose server averages uploads, such as FedAvg, FedProx or FedeRage"


@dataclasses.dataclass(frozen=True)
class Weighting(Wrapper):
    """A wrapper that decides who trains, or with which weights the uploads of `base` are averaged.

    Raises InvalidInput for a base that keeps what a change of weights would break: control variates, stored updates,
    or weights of its own.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.base, Wrapper):
            reason = f"{self.base.name} is not local work; put it outside: {self.base.name}(base={self.name}(...))"
            raise checks.InvalidInput("base", self.base.name, AVERAGES, reason)
        if not averages(self.base):
            reason = f"{self.base.name} keeps more than a mean of uploads, and other weights would break what it keeps"
            raise checks.InvalidInput("base", self.base.name, AVERAGES, reason)

    def fits(self, clients: int) -> None:
        if self.oracle:
            bound(self.law, clients)  # type: ignore[attr-defined]

    def at(self, down: Tree) -> Tree:
        """Model parameters within the base's broadcast."""
        return self.base.parameters(self.start(down))


@dataclasses.dataclass(frozen=True)
class Reweighting(Weighting):
    """A wrapper whose weights need no report of the clients: they are set when the uploads are there."""

    # Whether the weights act as they are, x + sum w_i (y_i - x), instead of being divided by their sum.
    keeps_sum: ClassVar[bool] = False

    @abstractmethod
    def arrived(self, own: Tree, cohort: Cohort) -> jax.Array:
        """Weights [S] of the uploads that are used; those of other slots do not count."""

    def observed(self, own: Tree, cohort: Cohort) -> Tree:
        """The wrapper's server state once it is known who came; `arrived` sees this one."""
        return own

    def aggregate(self, server: Wrapped, up: Tree, cohort: Cohort) -> Wrapped:
        own = self.observed(server.own, cohort)
        weights, total = normalised(self.arrived(own, cohort), cohort.weights > 0)
        base = self.base.aggregate(server.base, up, cohort._replace(weights=weights))
        if self.keeps_sum:
            base = jax.tree.map(lambda old, new: old + total * (new - old), server.base, base)
        base = jax.tree.map(lambda old, new: jnp.where(total > 0, new, old), server.base, base)
        return Wrapped(base, own)


def averages(method: Algorithm) -> bool:
    """Whether the new server state of a method is a weighted mean of uploads, and nothing else is kept of them."""
    kind = type(method)
    stateless = kind.init_clients is Algorithm.init_clients
    return isinstance(method, FirstOrder) and kind.aggregate is FirstOrder.aggregate and stateless


def normalised(weights: jax.Array, chosen: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Weights [S] >= 0 of the chosen slots over their sum, and that sum; all 0 when none is chosen."""
    kept = jnp.where(chosen, weights, 0.0)
    # In units of the largest: equal weights then are exactly 1/m, whatever their size.
    unit = jnp.max(kept)
    kept = kept / jnp.where(unit > 0, unit, 1.0)
    total = jnp.sum(kept)
    return kept / jnp.where(total > 0, total, 1.0), unit * total


def among(cohort: Cohort, chosen: jax.Array) -> jax.Array:
    """The cohort's weights for the chosen slots alone, bool[S]; unchanged to the last bit when all are chosen."""
    dropped = jnp.any((cohort.weights > 0) & ~chosen)
    return jnp.where(dropped, normalised(cohort.weights, chosen)[0], cohort.weights)


def largest(scores: jax.Array, size: int) -> jax.Array:
    """bool[S]: the `size` largest scores, the first of equal ones first; never a score of -inf."""
    rank = jnp.argsort(jnp.argsort(-scores))
    return (rank < size) & (scores > -jnp.inf)


def bound(law: Law, clients: int) -> Law:
    """The law for a run's clients; raises InvalidInput when it is for another number."""
    try:
        return law.bind(clients)
    except checks.InvalidInput as error:
        raise error.inside("law") from None


def inverse_inclusion(law: Law, clients: int) -> jax.Array:
    """1/P(i in S) [N], and 0 for a client that never gets through: its weight is never asked for."""
    inclusion = bound(law, clients).inclusion_probabilities()
    return jnp.asarray(np.divide(1.0, inclusion, out=np.zeros(clients), where=inclusion > 0))


def never_there(law: Law, clients: int) -> list[str]:
    """A warning that names the clients whom the law never lets through."""
    never = np.flatnonzero(bound(law, clients).inclusion_probabilities() == 0)
    if not len(never):
        return []
    named = ", ".join(map(str, never[:10])) + (", ..." if len(never) > 10 else "")
    return [f"the law never lets {len(never)} of {clients} clients through ({named}): no weight can make up for that"]


def client_losses(model: Functional, params: Tree, batches: Batches) -> jax.Array:
    """F_i(params) [S]: mean loss of each client over all its rows; 0 for an empty slot."""

    def work(x: jax.Array, y: jax.Array, share: jax.Array) -> jax.Array:
        return jnp.sum(model.loss(params, x, y) * share)

    losses: jax.Array = over_rows(work, batches)
    return losses


def client_gradients(model: Functional, params: Tree, batches: Batches) -> tuple[jax.Array, Tree]:
    """F_i(params) [S] and its gradients [S, ...]; 0 for an empty slot."""

    def work(x: jax.Array, y: jax.Array, share: jax.Array) -> tuple[jax.Array, Tree]:
        return jax.value_and_grad(lambda at: jnp.sum(model.loss(at, x, y) * share))(params)

    found: tuple[jax.Array, Tree] = over_rows(work, batches)
    return found


def over_rows(work: Callable[[jax.Array, jax.Array, jax.Array], Any], batches: Batches) -> Any:
    """work(features, labels, share) of each client over all its rows; the shares sum to one, 0 for padding."""

    def slot(index: jax.Array, present: jax.Array) -> Any:
        share = present[0] / jnp.sum(present[0])
        return work(batches.features[index[0]], batches.labels[index[0]], share)

    return over_cohort(slot, (batches.index, batches.present), batches.steps > 0, batches.layout)

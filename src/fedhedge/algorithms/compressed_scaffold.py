"""SCAFFOLD whose only upload is a coarsely rounded change of the client's control."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import Cohort, Tree, traced, weighted_mean
from fedhedge.algorithms.control_variates import Down, State
from fedhedge.algorithms.first_order import Stepped, over_rates
from fedhedge.algorithms.scaffold import Scaffold


class Client(NamedTuple):
    """Client state: the control c_i, and visits so far."""

    control: Tree
    visits: jax.Array


class Coded(NamedTuple):
    """An upload: whole numbers, the unit of each array (None: exact numbers), whether c_i changes by it (None: yes)."""

    codes: Tree
    units: Tree
    refreshes: jax.Array | None


@traced
@dataclasses.dataclass(frozen=True)
class CompressedScaffold(Scaffold):
    """SCAFFOLD with uploads of a few bits a parameter: Q_i, the change of c_i, rounded; no model is sent.

    Q_i = Q(c_i+ - c_i) = Q((x - y_i)/(H eta) - c);  c_i <- c_i + Q_i at the client, and at the server
    x <- x - eta_g H eta (c + mean_S Q_i);  c <- c + (1/N) sum_S Q_i, which keeps c the mean of all c_i.
    Q rounds each array to whole multiples of u = max|.|/(2^(bits-1) - 1), so that |Q(v) - v| <= u/2: the error is at
    most 1/(2^bits - 2) of the largest entry (1/14 for 4 bits). What rounding leaves out stays within g_i - c_i and is
    in the next upload; at the fixed point c_i+ = c_i, nothing is left to round, and the limit is SCAFFOLD's.
    bits: 2 to 8, or None for exact numbers, which is Scaffold to rounding. every: c_i changes at each client's first,
    (every + 1)-th, ... visit only, which spares the client writes of its state; Q_i has to be sent at every visit.
    step, server_step, ball: as in Scaffold. Uplink: `bits` an entry, a scalar for each
    array, and H_i where clients' steps differ.
    Raises InvalidInput for values that are not allowed.
    Source: Scaffold in one-upload form; rounding of differences as in Mishchenko et al. 2019 (arXiv 1901.09269), but
    to the nearest.
    """

    name: ClassVar[str] = "CompressedScaffold"
    bits: int | None = 4
    every: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bits is not None:
            checks.integer("bits", self.bits, low=2, high=8)
        checks.integer("every", self.every, low=1)

    def init_clients(self, clients: int, server: State) -> Client:
        return Client(super().init_clients(clients, server), jnp.zeros(clients, jnp.int32))

    def direction(self, loss: jax.Array, gradient: Tree, point: Tree, down: Down, client: Client) -> Tree:
        return super().direction(loss, gradient, point, down, client.control)

    def finish(self, point: Tree, down: Down, client: Client, steps: jax.Array) -> tuple[Coded, Client]:
        move = jax.tree.map(jnp.subtract, self.start(down), point)
        change = jax.tree.map(jnp.subtract, over_rates(move, self.step, steps), down.control)
        refreshes = client.visits % self.every == 0
        codes, units = encode(change, self.bits)
        control = jax.tree.map(lambda c, q: c + refreshes * q, client.control, decode(codes, units))
        told = None if self.every == 1 else refreshes.astype(jnp.int8)
        return Coded(codes, units, told), Client(control, client.visits + 1)

    def aggregate(self, server: State, up: Stepped, cohort: Cohort) -> State:
        change = jax.vmap(decode)(up.content.codes, up.content.units)
        weights = self.step * up.steps * cohort.weights
        moved = jax.tree.map(lambda c, q: jnp.sum(weights) * c + q, server.control, weighted_mean(weights, change))
        model = jax.tree.map(lambda x, d: x - self.server_step * d, server.base, moved)
        counts = cohort.weights > 0
        if up.content.refreshes is not None:
            counts = counts & (up.content.refreshes > 0)
        share = counts / server.population
        control = jax.tree.map(jnp.add, server.control, weighted_mean(share, change))
        return State(model, control, server.population)

    def scalars(self, up: Stepped) -> int:
        """Codes of `bits` each, a 32-bit unit for each array, one bit of `every`; H_i where it is sent; in 32 bits."""
        leaves = jax.tree.leaves(up.content.codes)
        entries = sum(math.prod(leaf.shape) for leaf in leaves)
        told = 0 if up.content.refreshes is None else 1
        bits: int = 32 * entries if self.bits is None else self.bits * entries + 32 * len(leaves)
        return math.ceil((bits + told) / 32) + (0 if up.own is None else 1)


def encode(tree: Tree, bits: int | None) -> tuple[Tree, Tree]:
    """(codes, units): each array as whole multiples, int8, of a unit of its own; (tree, None) where bits is None."""
    if bits is None:
        return tree, None
    largest = 2 ** (bits - 1) - 1
    units = jax.tree.map(lambda leaf: jnp.max(jnp.abs(leaf)) / largest, tree)
    codes = jax.tree.map(
        lambda leaf, unit: jnp.rint(leaf / jnp.where(unit > 0, unit, 1.0)).astype(jnp.int8), tree, units
    )
    return codes, units


def decode(codes: Tree, units: Tree) -> Tree:
    """The arrays that codes and units stand for."""
    return codes if units is None else jax.tree.map(jnp.multiply, codes, units)

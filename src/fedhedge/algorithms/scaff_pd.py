"""Scaff-PD: an accelerated primal-dual method with bias-corrected local steps."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import Batches, Cohort, Start, Tree, traced, weighted_mean
from fedhedge.algorithms.first_order import FirstOrder
from fedhedge.algorithms.simplex import ascend
from fedhedge.algorithms.weighting import client_gradients, normalised
from fedhedge.models.base import Functional


class State(NamedTuple):
    """Server state: x, the control c, lambda [N], each client's last reported loss [N] and whether it has one."""

    model: Tree
    control: Tree
    weights: jax.Array
    losses: jax.Array
    known: jax.Array


class Down(NamedTuple):
    """The model x and the control c = sum lambda_i grad F_i(x)."""

    model: Tree
    control: Tree


class Report(NamedTuple):
    """F_i(x) [S] and its gradient [S, ...]."""

    loss: jax.Array
    gradient: Tree


@traced
@dataclasses.dataclass(frozen=True)
class ScaffPD(FirstOrder):
    """min over x, max over lambda in the simplex, of sum lambda_i f_i(x) - (rho/2) N |lambda - 1/N|^2.

    A round: clients report F_i(x) and g_i = grad F_i(x); s = (1 + theta) F(x) - theta F(x of the round before);
    lambda <- argmax over the simplex of <s, lambda> - (rho/2) N |lambda - 1/N|^2 - |lambda - lambda_old|^2/(2 sigma);
    c = sum lambda_i g_i is sent; local steps y <- y - eta (grad f_i(y) - g_i + c);
    x <- x + eta_g sum lambda_i (y_i - x).
    The paper needs everyone in every round. With fewer, lambda_i counts over its sum in S, and s is (N/|S|) times the
    above for those in S, 0 for others, a client's last report standing in for the round before.
    step: eta > 0. server_step: eta_g > 0. dual_step: sigma. extrapolation: theta in [0, 1]. penalty: rho (chi-square).
    Client state: g_i, between its report and the end of the same round. Uplink: a model and a scalar more than FedAvg.
    on_nonfinite="skip" cannot help against a client whose report is finite and whose upload is not: its report is in c
    and in lambda before its upload fails, so that others have gone along with it, and lambda tends to that client.
    Raises InvalidInput for values outside these sets.
    Source: Yu, Karimireddy, Ma and Jordan 2023 (arXiv 2307.13381), Algorithm 1, eq. (4.1), (4.2).
    """

    name: ClassVar[str] = "ScaffPD"
    server_step: float = 1.0
    dual_step: float = 0.1
    extrapolation: float = 1.0
    penalty: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("step", self.step, above=0.0)
        checks.number("server_step", self.server_step, above=0.0)
        checks.number("dual_step", self.dual_step, low=0.0)
        checks.number("extrapolation", self.extrapolation, low=0.0, high=1.0)
        checks.number("penalty", self.penalty, low=0.0)

    def init_server(self, start: Start) -> State:
        never = jnp.zeros(start.clients)
        control = jax.tree.map(jnp.zeros_like, start.params)
        return State(start.params, control, jnp.full(start.clients, 1.0 / start.clients), never, never > 0)

    def init_clients(self, clients: int, server: State) -> Tree:
        return jax.tree.map(lambda leaf: jnp.zeros((clients, *leaf.shape), leaf.dtype), server.model)

    def inquire(self, server: State) -> Tree:
        return server.model

    def probe(self, model: Functional, down: Tree, clients: Tree, batches: Batches, keys: jax.Array) -> Report:
        return Report(*client_gradients(model, down, batches))

    def prepare(self, clients: Tree, seen: Report) -> Tree:
        return seen.gradient

    def weigh(self, server: State, seen: Report, cohort: Cohort, key: jax.Array) -> tuple[State, jax.Array]:
        here = cohort.weights > 0
        before = jnp.where(server.known[cohort.clients], server.losses[cohort.clients], seen.loss)
        gains = (1.0 + self.extrapolation) * seen.loss - self.extrapolation * before
        # The penalty divides the unprojected point, and its other terms move all entries alike, which Proj ignores.
        shrink = 1.0 / (1.0 + self.dual_step * self.penalty * len(server.weights))
        dual = ascend(shrink * server.weights, cohort.clients, here, gains, shrink * self.dual_step)
        weights, _ = normalised(dual[cohort.clients], here)
        slots = jnp.where(here, cohort.clients, len(dual))
        losses = server.losses.at[slots].set(seen.loss, mode="drop")
        known = server.known.at[slots].set(True, mode="drop")
        return State(server.model, weighted_mean(weights, seen.gradient), dual, losses, known), weights

    def broadcast(self, server: State) -> Down:
        return Down(server.model, server.control)

    def start(self, down: Down) -> Tree:
        return down.model

    def direction(self, loss: jax.Array, gradient: Tree, point: Tree, down: Down, client: Tree) -> Tree:
        return jax.tree.map(lambda g, own, common: g - own + common, gradient, client, down.control)

    def finish(self, point: Tree, down: Down, client: Tree, steps: jax.Array) -> tuple[Tree, Tree]:
        return jax.tree.map(jnp.subtract, point, down.model), client

    def aggregate(self, server: State, up: Tree, cohort: Cohort) -> State:
        moved = weighted_mean(cohort.weights, up)
        return server._replace(model=jax.tree.map(lambda x, d: x + self.server_step * d, server.model, moved))

    def iterate(self, server: State) -> Tree:
        return server.model

    def diagnostics(self, server: State) -> dict[str, jax.Array]:
        return {"largest_lambda": jnp.max(server.weights)}

"""FedOpt: an optimiser at the server that takes the clients' mean move for a gradient."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from fedhedge import checks
from fedhedge.algorithms.base import Algorithm, Cohort, Start, Tree, traced
from fedhedge.algorithms.weighting import averages
from fedhedge.algorithms.wrapper import Wrapped, Wrapper

MOMENTUM = "momentum"
OPTIMIZERS = ("adam", "yogi", "adagrad", MOMENTUM)


class Moments(NamedTuple):
    """What the optimiser remembers, shaped like the model: m, and v but for momentum."""

    first: Tree
    second: Tree


@traced
@dataclasses.dataclass(frozen=True)
class FedOpt(Wrapper):
    """A base method whose server steps by an optimiser: FedAdam, FedYogi, FedAdagrad, FedAvgM over any such base.

    Delta = the base's new model - x;  m <- beta1 m + (1 - beta1) Delta;  x <- x + eta_g m/(sqrt(v) + tau), with
        adagrad: v <- v + Delta^2;  adam: v <- beta2 v + (1 - beta2) Delta^2;
        yogi: v <- v - (1 - beta2) Delta^2 sign(v - Delta^2),
    without bias correction, v from tau^2. momentum: m <- beta1 m + Delta;  x <- x + eta_g m; with beta1 = 0 and
    eta_g = 1 that is the base, bit for bit. Over FedeRage the rule moves theta; beta is averaged plainly, since it is
    a quantile in units of the loss that a preconditioned step would only overshoot.
    base: a method whose server averages. optimizer: "adam", "yogi", "adagrad" or "momentum". server_step: eta_g;
    None takes 0.01, and 1 for momentum (the paper tunes it for each task). beta1: None takes 0.9, and 0 for adagrad.
    beta2, tau: as above; tau is in units of Delta. Uplink and client state: the base's. Server state: 2 d more.
    Raises InvalidInput for a base with a server rule of its own and for values that are not allowed.
    Source: Reddi et al. 2021 (arXiv 2003.00295), Algorithm 2 with its beta1, beta2, tau; momentum as in Hsu et al. 2019
    (arXiv 1909.06335).
    """

    name: ClassVar[str] = "FedOpt"
    optimizer: str = "adam"
    server_step: float = None  # type: ignore[assignment]  # resolved below: the default depends on the optimiser
    beta1: float = None  # type: ignore[assignment]
    beta2: float = 0.99
    tau: float = 1e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        core = self.base
        while isinstance(core, Wrapper) and not isinstance(core, FedOpt):
            core = core.base
        if not averages(core):
            raise checks.InvalidInput(
                "base",
                core.name,
                "a method whose server averages, such as FedAvg, FedProx or FedeRage",
                f"the server of {core.name} already has a rule of its own, which a second one would contradict",
            )
        checks.one_of("optimizer", self.optimizer, OPTIMIZERS)
        if self.server_step is None:
            object.__setattr__(self, "server_step", 1.0 if self.optimizer == MOMENTUM else 0.01)
        if self.beta1 is None:
            object.__setattr__(self, "beta1", 0.0 if self.optimizer == "adagrad" else 0.9)
        checks.number("server_step", self.server_step, above=0.0)
        checks.number("beta1", self.beta1, low=0.0, below=1.0)
        checks.number("beta2", self.beta2, low=0.0, below=1.0)
        checks.number("tau", self.tau, above=0.0)

    def init_own(self, start: Start) -> Moments:
        first = jax.tree.map(jnp.zeros_like, start.params)
        if self.optimizer == MOMENTUM:
            return Moments(first, ())
        return Moments(first, jax.tree.map(lambda leaf: jnp.full_like(leaf, self.tau**2), start.params))

    def aggregate(self, server: Wrapped, up: Tree, cohort: Cohort) -> Wrapped:
        base = self.base.aggregate(server.base, up, cohort)
        before, mean = (self.parameters(self.base.iterate(state)) for state in (server.base, base))
        delta = jax.tree.map(jnp.subtract, mean, before)
        fresh = 1.0 if self.optimizer == MOMENTUM else 1.0 - self.beta1
        first = jax.tree.map(lambda m, d: self.beta1 * m + fresh * d, server.own.first, delta)
        second = jax.tree.map(self._second, server.own.second, () if self.optimizer == MOMENTUM else delta)
        along = first
        if self.optimizer != MOMENTUM:
            along = jax.tree.map(lambda m, v: m / (jnp.sqrt(v) + self.tau), first, second)
        # From the mean, not from x: exactly the base where the step is Delta.
        params = jax.tree.map(lambda y, a, d: y + (self.server_step * a - d), mean, along, delta)
        return Wrapped(_with_parameters(self.base, base, params), Moments(first, second))

    def _second(self, v: jax.Array, delta: jax.Array) -> jax.Array:
        square = delta**2
        if self.optimizer == "adagrad":
            return v + square
        if self.optimizer == "yogi":
            return v - (1.0 - self.beta2) * square * jnp.sign(v - square)
        return self.beta2 * v + (1.0 - self.beta2) * square


def _with_parameters(method: Algorithm, server: Any, params: Tree) -> Any:
    """The server state of a method, or of a wrapper of one, with other model parameters."""
    if isinstance(method, Wrapper):
        return server._replace(base=_with_parameters(method.base, server.base, params))
    iterate = method.with_parameters(method.iterate(server), params)  # type: ignore[attr-defined]
    return method.with_iterate(server, iterate)  # type: ignore[attr-defined]

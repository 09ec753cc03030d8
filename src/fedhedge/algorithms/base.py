"""The contract that every method fulfils: pure functions over explicit state, written for a cohort of clients.

A round is `down = broadcast(server)`, then `up, clients = local(model, down, clients, batches, keys)` for the
clients at work, then `server = aggregate(server, up, cohort)`. A method may put a first phase before that, which costs
a message each way: `seen = probe(model, inquire(server), clients, rows, keys)` of all who got through, then
`server, weights = weigh(server, seen, cohort, key)`, and only those with a positive weight go on.
The driver (the compiled loop, the host loop or a federation) owns everything else: who takes part, which rows, when a
client's new state becomes final.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from fedhedge import checks
from fedhedge.availability.base import Law
from fedhedge.models.base import Functional

Tree = Any
Client = TypeVar("Client")
Method = TypeVar("Method", bound="type[Algorithm]")

FEW_SLOTS = 8


@dataclasses.dataclass(frozen=True)
class Layout:
    """How a cohort is laid out in a compiled programme; the choice changes speed, not meaning.

    side_by_side: clients as one batched computation (accelerators) instead of one after another (CPU caches).
    unroll: straight-line code for local steps and clients, which convolutions on the CPU need.
    padded: some slots of the cohort may be empty, so that each slot asks whether it is at work.
    """

    side_by_side: bool = False
    unroll: bool = False
    padded: bool = False


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Batches:
    """The mini-batches of a cohort, as row numbers into a pool of rows that stays where it is.

    Shapes, with S slots, H local steps (the largest of the cohort) and b rows: features [n, ...], labels [n],
    index [S, H, b], present [S, H, b] or None (which of the b rows exist; None = all), steps [S] (local steps of
    each client; 0 = the slot is empty).
    """

    features: jax.Array
    labels: jax.Array
    index: jax.Array
    present: jax.Array | None
    steps: jax.Array
    uniform_steps: bool = dataclasses.field(default=True, metadata={"static": True})
    layout: Layout = dataclasses.field(default=Layout(), metadata={"static": True})


class Cohort(NamedTuple):
    """Whose uploads a server aggregates; arrays [S], with empty slots where nobody worked.

    clients: client numbers, N for an empty slot. weights: aggregation weights that sum to one over the cohort, 0 for
    a slot whose upload is not used. mass: weights of the same clients among all N, which sum to one over all clients.
    """

    clients: jax.Array
    weights: jax.Array
    mass: jax.Array


class Start(NamedTuple):
    """What a method starts from: the initial model, the number of clients N, their weights, the initial mean loss.

    mass: float64[N], the weights of `Cohort.mass` for all clients, summing to one. loss: of all training rows,
    evaluated only when a method asks for it.
    """

    params: Tree
    clients: int
    mass: NDArray[np.float64]
    loss: Callable[[], float]


class Algorithm(ABC):
    """One federated method; instances are frozen dataclasses whose numbers are traced and whose rest is static."""

    name: ClassVar[str]
    # Whether `local` can be compiled; one that calls a solver is driven by the host loop.
    traceable: ClassVar[bool] = True
    # Arithmetic that the method's mathematics needs: "float32" or "float64".
    precision: ClassVar[str] = "float32"
    # Whether it is told the availability law, which no method knows in the field.
    oracle: ClassVar[bool] = False

    def fits(self, clients: int) -> None:  # noqa: B027 - most methods fit any number
        """Raise InvalidInput when a hyper-parameter is for another number of clients; those of `base` are its own."""

    @abstractmethod
    def init_server(self, start: Start) -> Tree:
        """Server state before the first round."""

    def init_clients(self, clients: int, server: Tree) -> Tree:
        """State that clients keep between rounds, as arrays with a leading axis of `clients`; none by default."""
        return ()

    @abstractmethod
    def broadcast(self, server: Tree) -> Tree:
        """What the server sends to each client, counted as downlink."""

    @property
    def probes(self) -> bool:
        """Whether clients report something before any of them trains."""
        return type(self).probe is not Algorithm.probe

    @property
    def weighs(self) -> bool:
        """Whether a round has a first phase, in which the server decides who trains and with which weight."""
        return self.probes or type(self).weigh is not Algorithm.weigh

    def inquire(self, server: Tree) -> Tree:
        """What the server sends before the probe; the broadcast, unless less will do."""
        return self.broadcast(server)

    def probe(self, model: Functional, down: Tree, clients: Tree, batches: Batches, keys: jax.Array) -> Tree:
        """Reports [S, ...] of all who got through, from the inquiry; `batches` holds all their rows as one step."""
        return ()

    def prepare(self, clients: Tree, seen: Tree) -> Tree:
        """Client states [S, ...] with which local work begins, after clients made their reports `seen`."""
        return clients

    def weigh(self, server: Tree, seen: Tree, cohort: Cohort, key: jax.Array) -> tuple[Tree, jax.Array]:
        """(New server state, weights [S] that sum to one, or all 0) from the reports; weight 0 means no training.

        An empty slot's report is all zeros, and its weight is 0 whatever is returned. key: for the server's own draws.
        """
        return server, cohort.weights

    @abstractmethod
    def local(
        self, model: Functional, down: Tree, clients: Tree, batches: Batches, keys: jax.Array
    ) -> tuple[Tree, Tree, dict[str, jax.Array]]:
        """Work of a cohort: (uploads, new client states, sums over local steps of what was observed), axis 0 = slot."""

    @abstractmethod
    def aggregate(self, server: Tree, up: Tree, cohort: Cohort) -> Tree:
        """New server state from uploads [S, ...] of a cohort."""

    def iterate(self, server: Tree) -> Tree:
        """The part of the server state whose average over rounds the theory speaks of."""
        return server

    def parameters(self, iterate: Tree) -> Tree:
        """Model parameters within an iterate."""
        return iterate

    def finished(self, server: Tree) -> jax.Array | bool:
        """Whether more rounds would change nothing worth having: then the run ends early."""
        return False

    @property
    def ends_early(self) -> bool:
        """Whether `finished` may end a run."""
        return type(self).finished is not Algorithm.finished

    def diagnostics(self, server: Tree) -> dict[str, jax.Array]:
        """Scalars of the server state worth a line in the history."""
        return {}

    def scalars(self, up: Tree) -> int:
        """Scalars of 32 bits that one client's upload of these shapes takes: one an entry, unless less will do."""
        return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(up))

    def warnings(self, model: Functional, start: Start, rounds: int, local_steps: int) -> list[str]:
        """What cannot work with these settings, in words; an empty list when nothing speaks against them."""
        return []

    def settings(self) -> dict[str, Any]:
        """Name and hyper-parameters as plain values, for summaries and fingerprints."""
        values = ((field.name, getattr(self, field.name)) for field in dataclasses.fields(self))  # type: ignore[arg-type]
        plain = {name: value.settings() if isinstance(value, Algorithm | Law) else value for name, value in values}
        return {"name": self.name} | ({"oracle": True} if self.oracle else {}) | plain


def traced(cls: Method) -> Method:
    """Register a frozen dataclass as a pytree whose float fields are leaves, so that one compilation serves all values.

    Those fields become Python floats, whatever kind of number was given. A field of type `Algorithm` (the method that
    this one builds on) is a subtree.

    Rebuilding skips `__init__`: a traced value has no magnitude that its checks could read.
    """
    if not dataclasses.is_dataclass(cls) or not isinstance(getattr(cls, "name", None), str):
        raise checks.InvalidInput(cls.__name__, cls, "a frozen dataclass with a class variable `name`")
    fields = dataclasses.fields(cls)
    dynamic = tuple(field.name for field in fields if "float" in str(field.type) or field.type == "Algorithm")
    static = tuple(field.name for field in fields if field.name not in dynamic)

    check = cls.__post_init__

    def check_and_convert(method: Algorithm) -> None:
        check(method)
        for name in dynamic:
            value = getattr(method, name)
            if isinstance(value, numbers.Real):
                object.__setattr__(method, name, float(value))

    cls.__post_init__ = check_and_convert

    def flatten(method: Algorithm) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple(getattr(method, name) for name in dynamic), tuple(getattr(method, name) for name in static)

    def unflatten(aux: tuple[Any, ...], children: tuple[Any, ...]) -> Algorithm:
        method: Algorithm = object.__new__(cls)
        for name, value in (*zip(dynamic, children, strict=True), *zip(static, aux, strict=True)):
            object.__setattr__(method, name, value)
        return method

    jax.tree_util.register_pytree_node(cls, flatten, unflatten)
    return cls


def weighted_mean(weights: jax.Array, trees: Tree) -> Tree:
    """Sum_s w_s tree_s over the leading axis of every leaf; weights [S] that sum to one."""

    def mean(leaf: jax.Array) -> jax.Array:
        share = weights.astype(leaf.dtype)
        # One expression of few slots is one pass over them. For many, one pass after another: a reduction over the
        # leading axis is several times slower on a CPU.
        few = min(len(share), FEW_SLOTS)
        total: jax.Array = functools.reduce(jnp.add, (share[s] * leaf[s] for s in range(few)))
        if few < len(share):
            total = jax.lax.fori_loop(few, len(share), lambda s, t: t + share[s] * leaf[s], total)
        return total

    return jax.tree.map(mean, trees)


def over_cohort(work: Callable[..., Client], arguments: tuple[Tree, ...], at_work: jax.Array, layout: Layout) -> Client:
    """Apply `work` to every slot of a cohort; empty slots cost nothing when slots run one after another.

    arguments: trees with a leading slot axis; at_work: bool[S]. An empty slot's result is all zeros.
    """

    def zeros() -> Client:
        shapes = jax.eval_shape(work, *jax.tree.map(lambda leaf: leaf[0], arguments))
        return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)  # type: ignore[no-any-return]

    def slot(yes: jax.Array, inputs: tuple[Tree, ...]) -> Client:
        if not layout.padded:
            return work(*inputs)
        done: Client = jax.lax.cond(yes, lambda: work(*inputs), zeros)
        return done

    if layout.side_by_side:
        return jax.vmap(slot)(at_work, arguments)

    def turn(_: None, item: tuple[jax.Array, tuple[Tree, ...]]) -> tuple[None, Client]:
        return None, slot(*item)

    return jax.lax.scan(turn, None, (at_work, arguments), unroll=layout.unroll)[1]

"""How much of FedeRage's Table I is computed: data set, model, rounds and seeds, whole and small."""

from __future__ import annotations

from dataclasses import dataclass

from fedhedge.models import CNN, MLP, Model


@dataclass(frozen=True)
class Size:
    """How much is computed. search_seeds empty: nothing is searched, the methods' starting values are taken.

    step: what FedAvg starts from, other methods in proportion.
    """

    dataset: str
    model: Model
    rounds: int
    every: int
    seeds: tuple[int, ...]
    search_rounds: int
    search_seeds: tuple[int, ...]
    laws: tuple[str, ...] = ("uniform", "skewed")
    step: float = 0.1


def _full(dataset: str, model: Model) -> Size:
    return Size(dataset, model, 10_000, 100, tuple(range(5)), 3_000, (100, 101))


FULL = {
    "mnist": _full("mnist", MLP(hidden=(200,))),
    "fashion-mnist": _full("fashion-mnist", MLP(hidden=(200,))),
    "cifar10": _full("cifar10", CNN(channels=(32, 64), hidden=128)),
}
FAST = {
    "mnist": Size("mnist", MLP(hidden=(64,)), 1_000, 50, (0, 1), 0, ()),
    "fashion-mnist": Size("fashion-mnist", MLP(hidden=(64,)), 1_000, 50, (0, 1), 0, ()),
    "cifar10": Size("cifar10", CNN(channels=(4, 8), hidden=32), 200, 25, (0,), 0, (), ("skewed",), step=0.03),
}

"""A fixed number of clients a round, drawn without replacement from a prior; and the prior for wanted probabilities."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedhedge import checks
from fedhedge.availability import arguments, successive_sampling
from fedhedge.availability.base import DIRECT_FROM, Law
from fedhedge.checks import InvalidInput

_ITERATIONS = 500
_AGREEMENT = 1e-12


@dataclass(frozen=True, eq=False)
class FixedSize(Law):
    """M = `size` clients drawn one by one, each with probability proportional to its prior among those left.

    The same law as the M largest of log r_i + Gumbel noise. `prior` is r[N], not negative, in any unit, with at least M
    positive entries; None is uniform over any number of clients. P(i in S) is *not* proportional to r_i; it is computed
    without enumeration to rounding (`successive_sampling`), and p_i = P(i in S) / M (FedeRage, eq. 7).
    Raises InvalidInput when the prior or the size cannot be used.
    """

    prior: ArrayLike | None = None
    size: int = 3

    def __post_init__(self) -> None:
        checks.integer("size", self.size, low=1)
        if self.prior is None:
            return
        given = arguments.numbers("prior", self.prior, dimensions=(1,))
        _check_size(self.size, given.size)
        positive = int(np.count_nonzero(given))
        if positive < self.size:
            raise InvalidInput(
                "prior",
                given.tolist(),
                f"at least {self.size} positive entries",
                f"size={self.size}, {positive} are positive",
            )
        given = given / given.sum()
        given.flags.writeable = False
        object.__setattr__(self, "prior", given)

    @property
    def clients(self) -> int | None:
        return None if self.prior is None else np.size(np.asarray(self.prior))

    def _tie(self, clients: int) -> Self:
        _check_size(self.size, clients)
        return dataclasses.replace(self, prior=np.ones(clients))

    @cached_property
    def _uniform(self) -> bool:
        return bool(np.ptp(np.asarray(self.prior)) == 0)

    @property
    def direct(self) -> bool:
        return self.count() >= DIRECT_FROM and self._uniform

    def draw(self, rng: np.random.Generator) -> NDArray[np.int64]:
        return np.sort(rng.choice(self.count(), self.size, replace=False, shuffle=False))

    def sample(self, rng: np.random.Generator, round: int) -> NDArray[np.bool_]:
        clients = self.count()
        if self.direct:
            return self._as_table(self.draw(rng))
        with np.errstate(divide="ignore"):
            rings = rng.exponential(size=clients) / np.asarray(self.prior)
        present = np.zeros(clients, dtype=np.bool_)
        present[np.argpartition(rings, self.size - 1)[: self.size]] = True
        return present

    def generating(self, z: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        return successive_sampling.generating(np.asarray(self.prior), self.size, z)

    def inclusion_probabilities(self) -> NDArray[np.float64]:
        clients = self.count()
        if self._uniform:
            return np.full(clients, self.size / clients)
        return super().inclusion_probabilities()

    def weights(self) -> NDArray[np.float64]:
        return np.asarray(self.inclusion_probabilities() / self.size)

    def empty_probability(self) -> float:
        return 0.0

    def sizes(self) -> NDArray[np.float64]:
        return np.bincount([self.size]).astype(np.float64)

    def largest(self) -> int:
        return self.size

    def smallest(self) -> int:
        return self.size


def prior_for(inclusion: ArrayLike, size: int) -> NDArray[np.float64]:
    """The prior, float64[N] summing to 1, under which `FixedSize(prior, size)` has these inclusion probabilities.

    `inclusion` is P(i in S), each in [0, 1), summing to `size`; 0 gives the prior 0. The prior r is unique up to its
    unit. Solved by moving log r_i by the difference of log(-log(1 - P_i)), which would be exact in one step if the
    time of the last ring were not random. Raises InvalidInput when no prior gives these probabilities.
    """
    wanted = arguments.probabilities("inclusion", inclusion, dimensions=(1,))
    _check_size(checks.integer("size", size, low=1), wanted.size)
    if abs(wanted.sum() - size) > 1e-9 * size:
        raise InvalidInput(
            "inclusion", wanted.tolist(), f"probabilities that sum to {size}", f"these sum to {wanted.sum():.10g}"
        )
    if wanted.max() >= 1:
        hint = "a client that always gets through would need an infinite prior"
        raise InvalidInput(f"inclusion[{wanted.argmax()}]", 1.0, "a number in [0, 1)", hint)
    active = wanted > 0
    target = wanted[active] * (size / wanted.sum())
    log_prior = np.log(-np.log1p(-target))
    ones = np.ones((1, target.size))
    for _ in range(_ITERATIONS):
        prior = np.exp(log_prior - log_prior.max())
        reached = successive_sampling.generating(prior, size, ones)[1][0]
        if np.abs(reached / target - 1).max() <= _AGREEMENT:
            break
        # A probability that rounds to 1 would make the step infinite.
        reached = np.minimum(reached, np.nextafter(1, 0))
        log_prior += np.log(-np.log1p(-target)) - np.log(-np.log1p(-reached))
    else:
        raise InvalidInput("inclusion", wanted.tolist(), "probabilities that are not so near to 1")
    result = np.zeros(wanted.size)
    result[active] = prior / prior.sum()
    return result


def _check_size(size: int, clients: int) -> None:
    if size > clients:
        raise InvalidInput("size", size, f"a whole number from 1 to {clients}", f"there are {clients} clients")

"""The contract of an availability law: who gets through in a round, and what that makes each client weigh."""

from __future__ import annotations

import dataclasses
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import roots_legendre

from fedhedge import checks, files, streams
from fedhedge.checks import InvalidInput

MONTE_CARLO_ROUNDS = 20_000
# From so many clients on, a law that can draws the clients of a round, instead of asking every client.
DIRECT_FROM = 5_000
# Rows of z evaluated at once: bounds the memory at a few arrays of this many rows.
_ROWS = 32
# Entries of a table of rounds and clients that is made on the way to who gets through.
_CELLS = 2**22
# Nodes of the Gauss rule up to which it is taken as it is; from there on it is refined until two rules agree.
_NODES, _AGREEMENT = 512, 1e-13


class Law(ABC):
    """The law R of the random set S of clients that get through in a round.

    A law is fixed, independent of the training, and the same in every run with the same seed. A law gives `sample`,
    `generating` and `largest`; everything else follows from these. Laws are compared by `settings()`.
    """

    @property
    @abstractmethod
    def clients(self) -> int | None:
        """Number of clients N, or None while the law is not tied to a number."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, round: int) -> NDArray[np.bool_]:
        """Who gets through in this round, bool[N], drawn from `rng` on its own (laws with memory: see `schedule`)."""

    @abstractmethod
    def generating(self, z: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Probability generating function F(z) = E[prod_{i in S} z_i] and its gradient, at each row of z[K, N].

        The gradient is dF/dz_i = E[1{i in S} prod_{j in S, j != i} z_j]. Returns F[K] and the gradient [K, N]; where
        the law changes from round to round, both are averages over rounds. z may be complex.
        """

    @abstractmethod
    def largest(self) -> int:
        """The largest possible |S|, or a bound that no |S| exceeds."""

    def smallest(self) -> int:
        """The smallest possible |S|, or a bound that no |S| is below."""
        return 0

    @property
    def exact(self) -> bool:
        """Whether the results are exact (to rounding) rather than Monte Carlo estimates."""
        return True

    @property
    def layers(self) -> int:
        """How many laws are wrapped inside this one; it keeps their random numbers apart."""
        return 0

    def bind(self, clients: int) -> Self:
        """The same law for N clients; raises InvalidInput when it is for another number."""
        clients = checks.integer("clients", clients, low=1)
        if self.clients is None:
            return self._tie(clients)
        if self.clients != clients:
            raise InvalidInput("clients", clients, str(self.clients), f"{type(self).__name__} is for {self.clients}")
        return self

    def _tie(self, clients: int) -> Self:
        raise NotImplementedError(f"{type(self).__name__} has no number of clients and cannot be tied to one")

    def schedule(self, seed: int, start: int, stop: int) -> NDArray[np.bool_]:
        """Who gets through in rounds start, ..., stop - 1: bool[stop - start, N].

        Round t is the same whatever the other rounds asked for: it draws from the stream (availability, round t).
        Raises InvalidInput when the seed or the rounds cannot be used.
        """
        check_rounds(seed, start, stop)
        present = np.empty((stop - start, self.count()), dtype=np.bool_)
        for row, t in enumerate(range(start, stop)):
            present[row] = self.sample(streams.generator(seed, streams.Purpose.AVAILABILITY, round=t), t)
        return present

    @property
    def direct(self) -> bool:
        """Whether `draw` gives the clients of a round, in a time that does not grow with N."""
        return False

    def draw(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Who gets through in a round, in ascending order, from a law that is `direct`."""
        raise NotImplementedError(f"{type(self).__name__} asks every client")

    def cohorts(self, seed: int, start: int, stop: int) -> list[NDArray[np.int64]]:
        """`schedule` as client numbers, in ascending order: one array for each round, int64[|S|].

        It takes the memory of the clients that get through, whatever N. Raises what `schedule` raises.
        """
        check_rounds(seed, start, stop)
        if self.direct:
            purpose = streams.Purpose.AVAILABILITY
            return [self.draw(streams.generator(seed, purpose, round=t)) for t in range(start, stop)]
        block = max(1, _CELLS // self.count())
        firsts = range(start, stop, block)
        return [np.flatnonzero(row) for t in firsts for row in self.schedule(seed, t, min(t + block, stop))]

    def _as_table(self, drawn: NDArray[np.int64]) -> NDArray[np.bool_]:
        present = np.zeros(self.count(), dtype=np.bool_)
        present[drawn] = True
        return present

    def inclusion_probabilities(self) -> NDArray[np.float64]:
        """P(i in S), float64[N]; they sum to E|S|."""
        _, gradient = self.generating(np.ones((1, self.count())))
        return np.asarray(gradient[0], dtype=np.float64)

    def empty_probability(self) -> float:
        """P(S is empty)."""
        value, _ = self.generating(np.zeros((1, self.count())))
        return float(value[0])

    def weights(self) -> NDArray[np.float64]:
        """Weight that averaging what arrives gives each client, float64[N], summing to 1 (FedeRage, eq. 8).

        p_i = E[1{i in S} / |S|] / P(S not empty), where E[1{i in S} / |S|] = integral over s in [0, 1] of dF/dz_i at
        z = (s, ..., s). That is a polynomial of degree largest() - 1 in s, for which the Gauss rule is exact; above a
        thousand clients fewer nodes will do: they are doubled until two rules agree within 1e-13.
        """
        enough = (self.largest() + 1) // 2
        nodes = min(enough, _NODES)
        total = self._mean_share(nodes)
        while nodes < enough:
            nodes, before = min(enough, 2 * nodes), total
            total = self._mean_share(nodes)
            if np.abs(total - before).max() <= _AGREEMENT * total.max():
                break
        return np.asarray(total / total.sum(), dtype=np.float64)

    def _mean_share(self, count: int) -> NDArray[np.float64]:
        """Twice the integral of dF/dz_i over s in [0, 1], by the Gauss rule of `count` nodes."""
        nodes, node_weights = roots_legendre(count)
        if count <= _NODES:
            return np.asarray(node_weights @ self._along((nodes + 1) / 2)[1])
        blocks = (slice(k, k + _ROWS) for k in range(0, count, _ROWS))
        return np.asarray(sum(node_weights[part] @ self._along((nodes[part] + 1) / 2)[1] for part in blocks))

    def sizes(self) -> NDArray[np.float64]:
        """P(|S| = m) for m = 0, ..., largest(): the coefficients of F(s, ..., s), read off on the unit circle."""
        count = self.largest() + 1
        value, _ = self._along(np.exp(2j * np.pi * np.arange(count) / count))
        return np.asarray(np.clip(np.fft.fft(value).real / count, 0.0, 1.0), dtype=np.float64)

    def _along(self, points: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """F and its gradient at z = (s, ..., s) for each point s."""
        ones = np.ones(self.count())
        parts = [self.generating(np.outer(points[k : k + _ROWS], ones)) for k in range(0, len(points), _ROWS)]
        return np.concatenate([value for value, _ in parts]), np.concatenate([gradient for _, gradient in parts])

    def monte_carlo(self, rounds: int = MONTE_CARLO_ROUNDS) -> NDArray[np.bool_]:
        """Rounds 0, ..., rounds - 1 drawn one by one from the Monte Carlo stream: bool[rounds, N]."""
        purpose = streams.Purpose.MONTE_CARLO
        return np.stack([self.sample(streams.generator(0, purpose, round=t), t) for t in range(rounds)])

    def standard_errors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Standard errors of `inclusion_probabilities()` and of `weights()`, float64[N] each: zero where exact.

        For a law that wraps a sampled one they are upper bounds, since the wrapper's own part is exact.
        """
        if self.exact:
            return np.zeros(self.count()), np.zeros(self.count())
        present = self.monte_carlo()
        arrived = present[present.any(axis=1)]
        shares = arrived / arrived.sum(axis=1, keepdims=True)
        return present.std(axis=0) / len(present) ** 0.5, shares.std(axis=0) / len(shares) ** 0.5

    def describe(self) -> pd.DataFrame:
        """One row per client: inclusion probability, weight (eq. 8), the uniform weight 1/N, and how exact they are."""
        clients = self.count()
        inclusion_error, weight_error = self.standard_errors()
        return pd.DataFrame(
            {
                "client": np.arange(clients),
                "inclusion_probability": self.inclusion_probabilities(),
                "weight": self.weights(),
                "uniform_weight": np.full(clients, 1 / clients),
                "method": "exact" if self.exact else "Monte Carlo",
                "inclusion_standard_error": inclusion_error,
                "weight_standard_error": weight_error,
            }
        )

    def record(self, rounds: int, path: str | Path, seed: int = 0) -> None:
        """Write rounds 0, ..., rounds - 1 to a .csv or .parquet file that `Trace` replays, atomically.

        Columns: round, client; a round in which nobody got through has one row with an empty client. The file does not
        say N: replay with `Trace(path, clients=N)` where the last clients may never have come.
        """
        rounds = checks.integer("rounds", rounds, low=1)
        path = Path(path)
        suffix = path.suffix.lower()
        if suffix not in (".csv", ".parquet"):
            raise InvalidInput("path", str(path), "a file name that ends in .csv or .parquet")
        present = self.schedule(seed, 0, rounds)
        empty = ~present.any(axis=1)
        t, client = np.nonzero(np.column_stack([present, empty]))
        frame = pd.DataFrame({"round": t, "client": pd.array(client, dtype="Int64")})
        frame.loc[client == present.shape[1], "client"] = pd.NA
        if suffix == ".csv":
            files.write_text(path, frame.to_csv(index=False, lineterminator="\n"))
        else:
            buffer = io.BytesIO()
            frame.to_parquet(buffer, index=False)
            files.write_bytes(path, buffer.getvalue())

    def settings(self) -> dict[str, Any]:
        """Name and arguments, ready for JSON: equal for equal laws."""
        arguments = {field.name: _plain(getattr(self, field.name)) for field in _fields(self)}
        return {"name": type(self).__name__, **arguments}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Law) and self.settings() == other.settings()

    def __hash__(self) -> int:
        return hash(json.dumps(self.settings(), sort_keys=True))

    def count(self) -> int:
        """Number of clients N; raises InvalidInput while the law is not tied to one."""
        if self.clients is None:
            name = type(self).__name__
            raise InvalidInput("clients", None, "a law tied to a number of clients", f"{name}(...).bind(clients)")
        return self.clients


def check_rounds(seed: int, start: int, stop: int) -> None:
    """Check the arguments of `Law.schedule`; raises InvalidInput."""
    streams.check_seed(seed)
    checks.integer("stop", stop, low=checks.integer("start", start, low=0))


def _fields(law: Law) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(law) if dataclasses.is_dataclass(law) else ()


def _plain(value: Any) -> Any:
    if isinstance(value, Law):
        return value.settings()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {",".join(map(str, key)): entry for key, entry in sorted(value.items())}
    return [_plain(entry) for entry in value] if isinstance(value, tuple) else value

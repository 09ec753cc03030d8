"""A first working set: the pieces and cuts that carry weight at a model, or at the minimum of a smoothed problem.

It decides how fast the exact solver is from scratch, never what it returns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from fedhedge.dro.cuts import Cuts, Pairs, steepest_cuts
from fedhedge.dro.norms import phi
from fedhedge.dro.pieces import Pieces
from fedhedge.dro.problem import Floats, Ints, Problem
from fedhedge.dro.working_set import WorkingSet
from fedhedge.dro.worst_case import evaluate

# Temperatures of the soft maxima over pieces and over norms, in units of the loss. The first one is lowered, by this
# factor and at most so often, while more pieces are near a kink than an optimum can need by far.
_LOSS_SMOOTHING = 0.02
_COOLING = 0.3
_STAGES = 6
_SLOPE_SMOOTHING = 0.05
# At a model near the optimum: the first temperature, how near to the largest norm a pair's is that counts as the same,
# and to zero a coordinate; the next value where the one before gives too much.
_NEARBY = (0.01, 0.001)
# Soft weight from which a piece, a pair or a direction enters the working set.
_THRESHOLD = 0.1
_ITERATIONS = 60


class Start(NamedTuple):
    """Model near the optimum and the working set there."""

    coef: Floats
    working_set: WorkingSet


def smoothed_start(problem: Problem, center: Floats, rho: float) -> Start:
    """Minimise r softmax(lam, pair norms) + mean softmax(pieces) + rho/2 ||M - C||^2 roughly, by L-BFGS."""
    smoothed = _Smoothed(problem, center, rho)
    lam = max(1.0, float(phi(center, problem.norm)))
    bounds = [(None, None)] * center.size + [(0.0, None)]
    options = {"maxiter": _ITERATIONS, "ftol": 1e-7, "gtol": 1e-4}
    vector = np.append(center, lam)
    for _ in range(_STAGES):
        vector = minimize(smoothed, vector, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
        start = smoothed.start(vector)
        if _few(len(start.working_set.extra.row), problem):
            break
        smoothed.temperature *= _COOLING
    return start


def start_at(problem: Problem, coef: Floats, rho: float) -> Start | None:
    """The working set at a model near the optimum; None where too much meets, as it does at equal rows."""
    smoothed = _Smoothed(problem, coef, rho)
    vector = np.append(coef, evaluate(coef, problem).lam)
    for near in _NEARBY:
        smoothed.temperature = near
        start = smoothed.start(vector, near)
        cuts = start.working_set.cuts
        if _few(len(start.working_set.extra.row), problem) and _few(len(cuts.first) + int(cuts.loose.sum()), problem):
            return start
    return None


def _few(count: int, problem: Problem) -> bool:
    """Whether these are no more pieces, or cuts and loose coordinates, than an optimum can need by far."""
    most: int = min(4 * (problem.classes * problem.X.shape[1] + 1), max(100, len(problem.y)))
    return count <= most


class _Smoothed:
    """Value and gradient of the smoothed objective at (M, lam) in one vector."""

    def __init__(self, problem: Problem, center: Floats, rho: float) -> None:
        self.problem, self.center, self.rho = problem, center, rho
        self.temperature = _LOSS_SMOOTHING
        classes = problem.classes
        self.rival, self.label = np.nonzero(~np.eye(classes, dtype=bool))
        self.flips = self.label != problem.y[:, None]
        self.trusted = np.isinf(problem.label_cost) * self.flips
        self.price = problem.finite_cost * self.flips
        identity = np.eye(classes)
        self.signs = identity[self.rival] - identity[self.label]
        self.first, self.second = np.triu_indices(classes, 1)
        self.pair_signs = identity[self.first] - identity[self.second]

    def __call__(self, vector: Floats) -> tuple[float, Floats]:
        problem = self.problem
        rows, radius = problem.X.shape[0], problem.radius
        coef, lam = self._unpack(vector)
        loss, weight = self._pieces(coef, lam)
        slope, share, direction = self._slope(coef, lam)
        away = coef - self.center
        value = radius * slope + loss.mean() + 0.5 * self.rho * (away * away).sum()
        in_coef = self.signs.T @ (weight[:, 1:].T @ problem.X) / rows + self.rho * away
        in_coef += radius * self.pair_signs.T @ (share[1:, None] * direction)
        in_lam = radius * share[0] - (weight[:, 1:] * self.price).sum() / rows
        return float(value), np.append(in_coef, in_lam)

    def start(self, vector: Floats, near: float | None = None) -> Start:
        """The model, and what carries much weight there; with `near`, all pairs whose norm comes so near to phi.

        Soft shares are off where norms are sums of many smoothed values, and a pair that is missing costs passes.
        """
        problem = self.problem
        coef, lam = self._unpack(vector)
        _, weight = self._pieces(coef, lam)
        rival, label = np.append(0, self.rival), np.append(0, self.label)
        every = np.arange(len(problem.y))
        base = self._base(weight)
        heavy = weight > _THRESHOLD * weight.max(1, keepdims=True)
        heavy[every, base] = False
        row, piece = np.nonzero(heavy)
        _, share, direction = self._slope(coef, lam)
        pairs = Pairs.of(coef, problem.norm)
        binding = share[1:] > _THRESHOLD if near is None else pairs.norms > pairs.norms.max() - near
        chosen = np.flatnonzero(binding & (problem.radius > 0.0))
        cuts = self._cuts(chosen, pairs, direction, 2.0 * _SLOPE_SMOOTHING if near is None else near)
        base_pieces = Pieces(every, rival[base], label[base])
        return Start(coef, WorkingSet(base_pieces, Pieces(row, rival[piece], label[piece]), cuts))

    def _base(self, weight: Floats) -> Ints:
        """One piece of each row: the heaviest, as long as the flipped ones among them fit the budget."""
        is_flip = np.column_stack([np.zeros(len(weight), dtype=bool), self.flips])
        heaviest = weight.argmax(1)
        flip_weight = np.where(is_flip, weight, 0.0).max(1)
        sure = np.flatnonzero(flip_weight > 1.0 - _THRESHOLD)
        cost = self.problem.finite_cost
        if cost > 0.0:
            affordable = int(len(weight) * self.problem.radius / cost)
            sure = sure[np.argsort(-flip_weight[sure])][:affordable]
        base: Ints = np.where(is_flip, -1.0, weight).argmax(1)
        base[sure] = heaviest[sure]
        return base

    def _unpack(self, vector: Floats) -> tuple[Floats, float]:
        return vector[:-1].reshape(self.center.shape), float(vector[-1])

    def _pieces(self, coef: Floats, lam: float) -> tuple[Floats, Floats]:
        """Soft maximum of each row's pieces, the zero piece first, and their weights [N, 1 + K(K-1)]."""
        margin = 1.0 + self.problem.X @ (self.signs @ coef).T - lam * self.price
        margin[self.trusted] = -np.inf
        return _softmax(np.column_stack([np.zeros(len(margin)), margin]), self.temperature)

    def _slope(self, coef: Floats, lam: float) -> tuple[float, Floats, Floats]:
        """Soft maximum of lam and the smoothed pair norms, their shares [1 + pairs], and the norms' gradients."""
        norms, direction = _smoothed_norms(self.problem.norm, coef[self.first] - coef[self.second])
        value, share = _softmax(np.append(lam, norms)[None], _SLOPE_SMOOTHING)
        return float(value[0]), share[0], direction

    def _cuts(self, chosen: Ints, pairs: Pairs, soft: Floats, near: float) -> Cuts:
        """Cuts of the chosen pairs; with norm l1 one for every corner that carries weight."""
        norm = self.problem.norm
        if norm == "l1":
            which, corner = np.nonzero(np.abs(soft[chosen]) > _THRESHOLD)
            pair = chosen[which]
            direction = np.zeros((len(pair), soft.shape[1]))
            direction[np.arange(len(pair)), corner] = np.sign(soft[pair, corner])
            loose = np.zeros(direction.shape, dtype=bool)
            none = np.zeros(len(pair))
            return Cuts(self.first[pair], self.second[pair], direction, none, none, loose, loose)
        return steepest_cuts(norm, pairs, chosen, np.zeros(len(chosen)), near)


def _softmax(values: Floats, temperature: float) -> tuple[Floats, Floats]:
    """temperature log sum exp(values / temperature) along the last axis, and its gradient."""
    highest = values.max(1, keepdims=True)
    weight = np.exp((values - highest) / temperature)
    total = weight.sum(1, keepdims=True)
    return (highest + temperature * np.log(total))[:, 0], weight / total


def _smoothed_norms(norm: str, rows: Floats) -> tuple[Floats, Floats]:
    """Smoothed dual norm of each row and its gradient."""
    if norm == "l1":
        value, weight = _softmax(np.hstack([rows, -rows]), _SLOPE_SMOOTHING)
        return value, weight[:, : rows.shape[1]] - weight[:, rows.shape[1] :]
    if norm == "linf":
        size = np.sqrt(rows * rows + _SLOPE_SMOOTHING**2)
        return size.sum(1), rows / size
    length = np.sqrt((rows * rows).sum(1) + _SLOPE_SMOOTHING**2)
    return length, rows / length[:, None]

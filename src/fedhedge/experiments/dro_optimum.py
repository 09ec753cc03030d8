"""The optimum that consensus methods for the robust risk are to reach, by one linear programme over all clients."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog

from fedhedge import checks, dro
from fedhedge.data import Clients
from fedhedge.dro.loss import label_pieces
from fedhedge.experiments.tables_data import Floats

Numbers = NDArray[np.integer[Any]]
TOLERANCE, MOST_PASSES = 1e-7, 100


class Robust(NamedTuple):
    """A robust problem: radius r, label cost kappa, norm on features, as of `fedhedge.algorithms.DroAdmm`."""

    radius: float
    label_cost: float
    norm: str


class _Pieces(NamedTuple):
    """Constraints t_i >= 1 + (m_j - m_k).x_i - kappa lam_g 1{k != y_i}: row i, rival j, label k, each [c]."""

    row: Numbers
    rival: Numbers
    label: Numbers


def mixture_risk(model: Floats, clients: Clients, robust: Robust) -> float:
    """mean_g F_g(M): the mean over clients of the worst-case risk of a model [K, P] on their training rows."""
    tables = (clients.rows("train", client) for client in range(len(clients)))
    return float(np.mean([dro.worst_case_risk(model, X, y, *robust).value for X, y in tables]))


def optimum(clients: Clients, robust: Robust) -> tuple[float, Floats]:
    """min over M of `mixture_risk`, and a model [K, P] that attains it within 1e-7.

    Linear programme in (M, lam_g, s, t): (1/G) sum_g (r lam_g + mean t_i), s >= ||m_j - m_k||_*, lam_g >= s, t >= 0 and
    the pieces above, those that a solution violates being added until its value is its risk. Norms "l1" and "linf",
    whose duals are polyhedral. Raises InvalidInput for another norm.
    """
    checks.one_of("norm", robust.norm, ("l1", "linf"))
    client = np.repeat(np.arange(len(clients)), clients.counts("train"))
    X, y = clients.rows("train")
    classes = len(clients.classes or ())
    size, rows = classes * X.shape[1], len(y)
    cost = np.concatenate(
        [
            np.zeros(size),
            np.full(len(clients), robust.radius / len(clients)),
            [0.0],
            1.0 / (len(clients) * clients.counts("train")[client]),
        ]
    )
    fixed = _norm_constraints(classes, X.shape[1], len(clients), rows, robust.norm)
    bounds = np.full((fixed.shape[1], 2), (0.0, np.inf))
    bounds[:size, 0] = -np.inf
    cost = np.pad(cost, (0, fixed.shape[1] - len(cost)))
    own = np.repeat(y, classes)
    rival = np.tile(np.arange(classes), rows)
    pieces = _Pieces(np.repeat(np.arange(rows), classes)[rival != own], rival[rival != own], own[rival != own])
    label_cost = 0.0 if math.isinf(robust.label_cost) else robust.label_cost
    for _ in range(MOST_PASSES):
        lhs = sp.vstack([fixed, _piece_constraints(pieces, X, y, client, classes, label_cost, fixed.shape[1])])
        rhs = np.concatenate([np.zeros(fixed.shape[0]), np.full(len(pieces.row), -1.0)])
        found = linprog(cost, A_ub=lhs.tocsr(), b_ub=rhs, bounds=bounds, method="highs")
        model = found.x[:size].reshape(classes, -1)
        risk = mixture_risk(model, clients, robust)
        if risk - found.fun <= TOLERANCE:
            return risk, model
        pieces = _with_violated(pieces, found.x, X, y, client, classes, label_cost)
    raise RuntimeError(f"the linear programme is {risk - found.fun:.1e} short after {MOST_PASSES} passes")


def _norm_constraints(classes: int, features: int, clients: int, rows: int, norm: str) -> sp.csr_array:
    """A of A z <= 0 for s >= ||m_j - m_k||_* and lam_g >= s; the dual l1 norm takes variables of its own at the end."""
    size = classes * features
    slope = size + clients
    free = slope + 1 + rows
    pairs = list(itertools.combinations(range(classes), 2))
    width = free + (len(pairs) * features if norm == "linf" else 0)
    entries: list[list[tuple[int, float]]] = []
    for number, (j, k) in enumerate(pairs):
        above = [free + number * features + p if norm == "linf" else slope for p in range(features)]
        for p, sign in itertools.product(range(features), (1.0, -1.0)):
            entries.append([(j * features + p, sign), (k * features + p, -sign), (above[p], -1.0)])
        if norm == "linf":
            entries.append([*((column, 1.0) for column in above), (slope, -1.0)])
    entries += [[(slope, 1.0), (size + g, -1.0)] for g in range(clients)]
    row = np.repeat(np.arange(len(entries)), [len(entry) for entry in entries])
    column, value = (np.array(part) for part in zip(*itertools.chain(*entries), strict=True))
    return sp.csr_array((value, (row, column)), shape=(len(entries), width))


def _piece_constraints(
    pieces: _Pieces, X: Floats, y: Numbers, client: Numbers, classes: int, label_cost: float, width: int
) -> sp.csr_array:
    """A of A z <= -1 for the pieces."""
    features = X.shape[1]
    count, size = len(pieces.row), classes * features
    clients = int(client.max()) + 1
    at = np.arange(count)
    own = np.arange(features)
    blocks = [
        (np.repeat(at, features), (pieces.rival[:, None] * features + own).ravel(), X[pieces.row].ravel()),
        (np.repeat(at, features), (pieces.label[:, None] * features + own).ravel(), -X[pieces.row].ravel()),
        (at, size + client[pieces.row], -label_cost * (pieces.label != y[pieces.row])),
        (at, size + clients + 1 + pieces.row, np.full(count, -1.0)),
    ]
    row, column, value = (np.concatenate(part) for part in zip(*blocks, strict=True))
    return sp.csr_array((value, (row, column)), shape=(count, width))


def _with_violated(
    pieces: _Pieces, z: Floats, X: Floats, y: Numbers, client: Numbers, classes: int, label_cost: float
) -> _Pieces:
    """The pieces and, of each row, that of its worst other label where a solution violates it."""
    size, clients = classes * X.shape[1], int(client.max()) + 1
    lam, t = z[size : size + clients][client], z[size + clients + 1 :][: len(y)]
    seen = label_pieces(z[:size].reshape(classes, -1), X, y)
    bad = np.flatnonzero(seen.other - label_cost * lam > t + 1e-10)
    return _Pieces(
        *(
            np.concatenate([old, new])
            for old, new in zip(pieces, (bad, seen.other_rival[bad], seen.other_label[bad]), strict=True)
        )
    )

"""The client problem and the worst-case risk as CVXPY programmes, written from the dual's rows."""

import math

import cvxpy as cp
import numpy as np


class NotSolvedError(Exception):
    """Clarabel stopped short of its tolerance."""


DUAL = {"l1": "inf", "l2": 2, "linf": 1}


def _rows(scores, lam, y, label_cost, classes):
    """Losses t with t >= 1 + s_j - s_k - label_cost lam [k is not the label] for all ordered pairs, t >= 0."""
    losses = cp.Variable(len(y), nonneg=True)
    constraints = []
    for k in range(classes):
        own = np.flatnonzero(y == k)
        for j in set(range(classes)) - {k}:
            margin = 1 + scores[:, j] - scores[:, k]
            if math.isinf(label_cost):
                if len(own):
                    constraints.append(losses[own] >= margin[own])
            else:
                constraints.append(losses >= margin - label_cost * lam * (y != k))
    return losses, constraints


def client_optimum(X, y, radius, label_cost, norm, center, rho):
    """Optimal value of the client problem."""
    classes = len(center)
    model, lam = cp.Variable(center.shape), cp.Variable(nonneg=True)
    losses, constraints = _rows(X @ model.T, lam, y, label_cost, classes)
    constraints += [lam >= cp.norm(model[j] - model[k], DUAL[norm]) for j in range(classes) for k in range(j)]
    objective = radius * lam + cp.sum(losses) / len(y) + rho / 2 * cp.sum_squares(model - center)
    return _solve(objective, constraints)


def risk(coef, X, y, radius, label_cost, norm):
    """Worst-case risk of a fixed model by its dual."""
    order = np.inf if norm == "l1" else DUAL[norm]
    slope = max(np.linalg.norm(a - b, order) for a in coef for b in coef)
    lam = cp.Variable()
    losses, constraints = _rows(X @ coef.T, lam, y, label_cost, len(coef))
    return _solve(radius * lam + cp.sum(losses) / len(y), [*constraints, lam >= slope])


def binary_hinge_optimum(X, sign, radius, label_cost, norm, rho):
    """min r lam + mean max(hinge(z), hinge(-z) - kappa lam) + rho/4 ||w||^2 over w and lam >= ||w||_*, z = sign w.x."""
    weights, lam = cp.Variable(X.shape[1]), cp.Variable()
    margin = cp.multiply(sign, X @ weights)
    losses = cp.maximum(cp.pos(1 - margin), cp.pos(1 + margin) - label_cost * lam)
    objective = radius * lam + cp.sum(losses) / len(sign) + rho / 4 * cp.sum_squares(weights)
    return _solve(objective, [lam >= cp.norm(weights, DUAL[norm])])


def regularised_optimum(X, y, radius, norm, center, rho):
    """min mean Crammer-Singer loss + r max over pairs ||m_j - m_k||_* + rho/2 ||M - C||^2."""
    classes = len(center)
    model = cp.Variable(center.shape)
    scores = X @ model.T
    losses = []
    for i, label in enumerate(y):
        others = [scores[i, k] for k in range(classes) if k != label]
        losses.append(cp.pos(1 + cp.maximum(*others, -np.inf) - scores[i, label]))
    slope = cp.maximum(*[cp.norm(model[j] - model[k], DUAL[norm]) for j in range(classes) for k in range(classes)])
    return _solve(sum(losses) / len(y) + radius * slope + rho / 2 * cp.sum_squares(model - center), [])


def _solve(objective, constraints):
    problem = cp.Problem(cp.Minimize(objective), constraints)
    problem.solve(cp.CLARABEL)
    if problem.status != cp.OPTIMAL:
        raise NotSolvedError(problem.status)
    return problem.value

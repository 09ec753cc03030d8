"""The optimum of the mean robust risk over clients: against the solver of one client, and as a lower bound."""

import math

import numpy as np
import pytest

import fedhedge as fh
from fedhedge import dro
from fedhedge.algorithms import DroAdmm
from fedhedge.experiments.dro_optimum import Robust, mixture_risk, optimum
from fedhedge.experiments.dro_recorded import recorded
from fedhedge.experiments.dro_synthetic import Arc
from fedhedge.experiments.selection import Job

ARC = Arc(3, 0.5, 0.3, flipped=0.2, per_class=10)


def clients_of(arc, seed=0, number=None):
    clients = arc.problem(seed, 2).whole.clients
    if number is None:
        return clients
    X, y = clients.rows("train")
    return fh.data.Clients(X, y, np.zeros(len(y), np.int32), np.zeros(len(y), np.int8), classes=clients.classes)


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("label_cost", [0.0, 0.3, math.inf])
def test_one_client_s_optimum_is_the_solver_s(norm, label_cost):
    """Two unlike methods: a linear programme with generated constraints, and a certified bundle of quadratic ones."""
    clients = clients_of(ARC, number=1)
    found, model = optimum(clients, Robust(0.05, label_cost, norm))
    solved = dro.solve_client(*clients.rows("train"), 0.05, label_cost, norm, classes=3)
    assert found == pytest.approx(solved.objective, abs=1e-6)
    assert dro.worst_case_risk(model, *clients.rows("train"), 0.05, label_cost, norm).value == pytest.approx(found)


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_no_model_is_below_and_consensus_tends_to_it(norm):
    robust = Robust(0.02, 0.5, norm)
    clients = clients_of(ARC)
    best, model = optimum(clients, robust)
    rng = np.random.default_rng(0)
    for scale in (1e-3, 0.1, 1.0):
        for _ in range(50):
            assert mixture_risk(model + scale * rng.normal(size=model.shape), clients, robust) >= best - 1e-7
    algorithm = DroAdmm(radius=0.02, norm=norm, tolerance=0.0)
    (trace,) = recorded([Job(algorithm, clients, 0)], 120)
    excess = np.array([mixture_risk(center, clients, robust) for center in trace.center]) - best
    assert excess.min() >= -1e-7
    assert excess[-1] < 0.01 * best < excess[0]


def test_refuses_a_norm_whose_dual_is_round():
    with pytest.raises(fh.InvalidInput, match="norm: received 'l2'"):
        optimum(clients_of(ARC), Robust(0.1, 0.5, "l2"))

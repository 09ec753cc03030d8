"""Where averaged iterates go under skewed availability, by linear programmes: to the objective claimed and no other."""

import functools

import numpy as np
import pytest

import fedhedge as fh
from fedhedge.experiments import absolute_loss
from fedhedge.experiments.absolute_loss import LAW, UNIFORM, optimum, risk

ALPHA, GAMMA = 0.3, 0.8
INDUCED = tuple(LAW.weights())
FLAT = tuple(UNIFORM)
OBJECTIVES = {
    "mean under availability": (INDUCED,),
    "mean, unweighted": (FLAT,),
    "mean-CVaR under availability": (INDUCED, (ALPHA,), (GAMMA,)),
    "mean-CVaR, unweighted": (FLAT, (ALPHA,), (GAMMA,)),
}
A = fh.algorithms
STEP, TAIL = 0.004, {"alpha": ALPHA, "gamma": GAMMA, "step": 0.002, "beta_step": 0.002, "cap": 20.0}
CLAIMS = {
    "FedAvg": (A.FedAvg(step=STEP), "mean under availability"),
    "FedProx": (A.FedProx(step=STEP, mu=0.01), "mean under availability"),
    "FedNova": (A.FedNova(step=STEP), "mean under availability"),
    "FedOpt, momentum": (
        A.FedOpt(A.FedAvg(step=STEP), optimizer="momentum", server_step=1.0),
        "mean under availability",
    ),
    "Anarchic, cd": (A.Anarchic(step=STEP, server="cd"), "mean under availability"),
    "Scaffold": (A.Scaffold(step=STEP), "mean, unweighted"),
    "Mifa": (A.Mifa(step=STEP), "mean, unweighted"),
    "FedVarp": (A.FedVarp(step=STEP), "mean, unweighted"),
    "Anarchic, cs": (A.Anarchic(step=STEP, server="cs"), "mean, unweighted"),
    "HorvitzThompson": (A.HorvitzThompson(A.FedAvg(step=STEP), law=LAW), "mean, unweighted"),
    "ArrivalWeights": (A.ArrivalWeights(A.FedAvg(step=STEP)), "mean, unweighted"),
    "FedeRage": (A.FedeRage(**TAIL), "mean-CVaR under availability"),
    "ControlledFedeRage": (A.ControlledFedeRage(**TAIL), "mean-CVaR, unweighted"),
    "HorvitzThompson of FedeRage": (A.HorvitzThompson(A.FedeRage(**TAIL), law=LAW), "mean-CVaR, unweighted"),
}


@functools.cache
def excesses(name):
    """How far the averaged iterate is above the minimum of each objective."""
    reached = absolute_loss.averaged(CLAIMS[name][0], rounds=40_000)
    return {
        objective: risk(reached, *arguments) - risk(optimum(*arguments), *arguments)
        for objective, arguments in OBJECTIVES.items()
    }


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", CLAIMS)
def test_the_objective_claimed_and_no_other(name):
    found = excesses(name)
    claimed = found.pop(CLAIMS[name][1])
    assert -1e-6 < claimed < 0.008
    assert min(found.values()) > 0.015


def test_the_objectives_have_different_minimisers():
    """Or the comparison above would show nothing."""
    points = [optimum(*arguments) for arguments in OBJECTIVES.values()]
    for number, (arguments, point) in enumerate(zip(OBJECTIVES.values(), points, strict=True)):
        for other in points[:number] + points[number + 1 :]:
            assert risk(other, *arguments) - risk(point, *arguments) > 0.01
    assert np.ptp(INDUCED) > 0.2

"""With everyone there and no noise, a federation is the simulation of the same files and seeds."""

import jax
import numpy as np
import pandas as pd
import pytest

from fedhedge.algorithms import METHODS

ROBUST = {"model": "CrammerSinger", "local_steps": 1, "batch_size": "all"}
SPECIAL = {
    "DroAdmm": ({"radius": 0.05}, ROBUST),
    "OneVsAllDro": ({"radius": 0.05}, ROBUST),
    "DpDroAdmm": ({"rounds": 6, "noise": 0.0}, ROBUST),
    "DpErmAdmm": ({"noise": 0.0}, ROBUST),
    "DpSgd": ({"noise": 0.0}, ROBUST),
    "PowerOfChoice": ({"size": 2}, {}),
}
PARTIAL = {"name": "FixedSize", "size": 2}


def same_models(left, right, tolerance):
    pairs = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def compare(run, simulated):
    tolerance = 1e-9 if np.asarray(jax.tree.leaves(run.params)[0]).dtype == np.float64 else 2e-5
    same_models(run.params, simulated.params, tolerance)
    same_models(run.average_params, simulated.average_params, tolerance)
    pd.testing.assert_frame_equal(run.participation, simulated.participation)
    key = ["round", "client", "split", "metric"]
    tables = [table.sort_values(key).reset_index(drop=True) for table in (run.history, simulated.history)]
    pd.testing.assert_frame_equal(*tables, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["PowerOfChoice", "DpDroAdmm"])
def test_everyone_there(small, federate, name):
    algorithm, top = SPECIAL.get(name, ({}, {}))
    content = small.content({"name": name, **algorithm}, **top)
    compare(federate(small.federation(content)), small.simulated(content))


@pytest.mark.deployment
@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method(small, federate, name):
    algorithm, top = SPECIAL.get(name, ({}, {}))
    content = small.content({"name": name, **algorithm}, **top)
    law = {"name": "Everyone"}
    if METHODS[name].oracle:
        content["algorithm"]["law"] = "availability"
    compare(federate(small.federation(content | {"availability": law})), small.simulated(content, law))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Mifa"])
def test_who_is_asked_by_the_law_of_the_file(small, federate, name):
    content = small.content({"name": name}, local_steps=[1, 2, 3], weighting="rows")
    federation = small.federation(content | {"availability": PARTIAL}, asks="law")
    compare(federate(federation), small.simulated(content, PARTIAL))

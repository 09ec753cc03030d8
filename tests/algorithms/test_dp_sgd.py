"""DP-Fed SGD against its algorithm written out."""

import math

import numpy as np

import fedhedge as fh
from robust_sites import hinge_subgradient, noise, sites, tables, watched


def test_every_round_is_the_algorithm_written_out_whoever_comes():
    """Weights by rows over those who came, and k the number of steps taken: empty rounds do not count."""
    m, step, seed = 1.5, 3.0, 11
    law = fh.availability.Subsets({(0,): 0.3, (1, 2): 0.4, (): 0.3}, clients=3)
    states, simulation = watched(fh.algorithms.DpSgd(noise=m, step=step), sites(), law, rounds=12, seed=seed)
    came = simulation.result().participation.groupby("round")["client"].apply(list).to_dict()
    assert 1 < len(came) < 12
    M, k, parts = np.zeros((3, 4)), 0, tables(sites())
    for t, state in enumerate(states):
        who = came.get(t, [])
        if who:
            k += 1
            counts = np.array([len(parts[g][1]) for g in who])
            noisy = [
                hinge_subgradient(M, *parts[g])
                + noise(seed, g, t, 0, M.shape) * m * 2 * math.sqrt(2) / len(parts[g][1])
                for g in who
            ]
            M = M - step / math.sqrt(k) * np.tensordot(counts / counts.sum(), noisy, 1)
        np.testing.assert_allclose(state.model, M, rtol=1e-9, atol=1e-12)


def test_small_steps_from_zero_are_one_predictor():
    """While all hinges are active the iterate is linear in eta_0."""
    everyone = fh.availability.Everyone()
    small, large = (
        watched(fh.algorithms.DpSgd(noise=0.5, step=step), sites(), everyone, rounds=2)[0][-1].model
        for step in (1e-4, 2e-4)
    )
    np.testing.assert_allclose(2 * small, large, rtol=1e-9)

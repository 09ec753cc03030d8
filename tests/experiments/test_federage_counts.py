"""The tail steps of each client: counted without touching the run, and in the limit the dual weights."""

import json

import numpy as np
import pytest

import fedhedge as fh
from fedhedge.experiments.absolute_loss import LAW, problem
from fedhedge.experiments.federage_counts import FIELDS, CountingFedeRage, kept
from fedhedge.experiments.federage_programme import solve
from fedhedge.experiments.federage_runs import Setting
from fedhedge.simulation import CheckpointMismatch

METHOD = fh.algorithms.FedeRage(alpha=0.4, gamma=0.8, step=0.05, beta_step=0.02, cap=10.0)
COUNTING = CountingFedeRage(**{name: getattr(METHOD, name) for name in FIELDS})


def jobs(method=COUNTING, rounds=60, law=LAW, seeds=(0, 1)):
    clients, model = problem()
    options = {"rounds": rounds, "evaluate_every": rounds, "local_steps": 3, "batch_size": 2}
    return Setting("convex", model, clients, law, (), options).jobs({"m": method}, seeds)


@pytest.mark.parametrize("law", [LAW, fh.availability.Independent((0.9, 0.7, 0.5, 0.3, 0.0))], ids=["fixed", "varying"])
def test_counting_changes_nothing_and_adds_up(tmp_path, law):
    counted = jobs(law=law, seeds=[0])
    plain = jobs(METHOD, law=law, seeds=[0])[0].simulation().run(None, False, False)
    run = counted[0].simulation().run(None, False, False)
    np.testing.assert_array_equal(run.params, plain.params)
    found = kept(counted, tmp_path)[0]
    assert found["steps"].sum() == 3 * plain.counts["uploads"]
    rate = plain.history.query("metric == 'tail_rate'")["value"].iloc[-1]
    assert found["tail"].sum() / found["steps"].sum() == pytest.approx(rate, rel=1e-6)
    assert (found["tail"] <= found["steps"]).all()
    came = np.bincount(plain.participation["client"], minlength=5)
    np.testing.assert_array_equal(found["steps"], 3 * came)


def test_what_is_there_is_not_run_again_and_must_fit(tmp_path):
    first = kept(jobs(), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    (tmp_path / "convex-m-1.json").unlink()
    again = kept(jobs(), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one["tail"], other["tail"])
    with pytest.raises(CheckpointMismatch, match="rounds"):
        kept(jobs(rounds=61), tmp_path)
    content = json.loads((tmp_path / "convex-m-0.json").read_text())
    del content["tail"]
    (tmp_path / "convex-m-0.json").write_text(json.dumps(content))
    with pytest.raises(CheckpointMismatch, match="damaged"):
        kept(jobs(), tmp_path)


@pytest.mark.slow
def test_tail_steps_tend_to_the_dual_weights(tmp_path):
    """CVaR alone, single rows, one local step: at the optimum client i has the share q_i of the tail."""
    clients, model = problem()
    for alpha in (0.2, 0.4):
        scale = 30_000**0.5 / alpha
        method = CountingFedeRage(alpha=alpha, gamma=1.0, step=3 / scale, beta_step=1 / scale, ball=5.0, cap=10.0)
        options = {"rounds": 30_000, "evaluate_every": 30_000, "local_steps": 1, "batch_size": 1}
        found = kept(Setting("c", model, clients, LAW, (), options).jobs({f"{alpha}": method}, range(4)), tmp_path)
        shares = np.mean([one["tail"] / one["tail"].sum() for one in found], axis=0)
        weights = solve(tuple(LAW.weights()), alpha, 1.0).client
        np.testing.assert_allclose(shares, weights, atol=0.02)
        # Far from the weights of availability, so that the agreement says something.
        assert np.abs(weights - LAW.weights()).max() > 0.1

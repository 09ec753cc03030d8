"""Choices on validation rows, paired differences, and the mean weight of FedeRage's steps."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fedhedge.algorithms import FedAvg, FedeRage
from fedhedge.availability import FixedSize
from fedhedge.data import ByLabel, load
from fedhedge.evaluation import paired_t
from fedhedge.experiments.federage_runs import Setting, choose, chosen_table, differences, mean_weight, points
from fedhedge.models import Linear


@pytest.fixture(scope="module")
def setting():
    clients = load("iris").partition(ByLabel(clients=6, classes_per_client=1), seed=0)
    return Setting("iris", Linear(), clients, FixedSize(size=2), (5,), {"rounds": 60, "evaluate_every": 20})


def test_the_best_on_validation_rows_is_chosen_and_a_diverged_one_never(setting, tmp_path):
    candidates = {"FedAvg": [FedAvg(step=step) for step in (0.0, 0.1, 0.1, 1e38)], "other": [FedAvg(step=0.0)]}
    chosen, table = choose(setting, candidates, (100, 101), tmp_path, quiet=True)
    assert chosen["FedAvg"].step == 0.1
    # A tie goes to the earlier candidate; each family has a choice of its own.
    assert table["chosen"].tolist() == [False, True, False, False, True]
    assert table["score"][1] == table["score"][2] > table["score"][0] == table["score"][4]
    assert [row[0] for row in chosen_table(table).rows] == ["iris, FedAvg", "iris, other"]
    again = choose(setting, candidates, (100, 101), tmp_path, quiet=True)[1]
    pd.testing.assert_frame_equal(table, again)


def test_differences_are_the_paired_t_test():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"method": np.repeat(["A", "B"], 6), "seed": np.tile(np.arange(6), 2), "x": rng.random(12)})
    # Rows in another order, so that pairing is by seed and not by place.
    line = differences(frame.iloc[rng.permutation(12)], "method", "A", ["x"]).iloc[0]
    test = stats.ttest_rel(frame["x"][:6].to_numpy(), frame["x"][6:].to_numpy())
    low, high = test.confidence_interval(0.95)
    assert (line["low"], line["high"], line["p_value"]) == pytest.approx((low, high, test.pvalue))
    assert line["difference"] == pytest.approx(frame["x"][:6].mean() - frame["x"][6:].mean())
    assert (line["method"], line["minus"], line["pairs"]) == ("A", "B", 6)
    assert differences(frame[frame["seed"] == 0], "method", "A", ["x"]).empty
    assert points(paired_t([0.5, 0.7], [0.4, 0.6])) == "+10.0 (+10.0 to +10.0)"


@pytest.mark.parametrize(("alpha", "gamma"), [(0.2, 0.5), (0.5, 0.9)])
def test_mean_weight_is_that_of_the_tail_steps(setting, alpha, gamma):
    """1 - gamma + (gamma/alpha) times the tail rate that the run saw, while beta stays inside B."""
    method = FedeRage(alpha=alpha, gamma=gamma, beta_step=0.003, cap=50.0, beta_start=0.5)
    job = setting.jobs({"m": method}, [0], evaluate_every=60)[0]
    run = job.simulation().run(None, False, False)
    rate = run.history.query("metric == 'tail_rate'")["value"].iloc[-1]
    assert mean_weight(run) == pytest.approx(1 - gamma + gamma / alpha * rate, rel=1e-4)
    assert mean_weight(run) != pytest.approx(1.0, abs=0.01)

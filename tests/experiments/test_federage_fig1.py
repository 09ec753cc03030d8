"""Fig. 1: regions are those of the model, numbers those of the runs, and a stopped one goes on."""

import numpy as np
import pandas as pd
import pytest

from fedhedge.algorithms import FedAvg
from fedhedge.experiments import federage_fig1 as fig1
from fedhedge.experiments.federage_fig1 import CANDIDATES, CONTROL, RARE, Size, run
from fedhedge.experiments.federage_regions import _margins
from fedhedge.simulation import Run

SIZE = Size(("softmax",), (0, 1), (100,))
COMMAND = "fedhedge reproduce federage-fig1"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A short form: its folder and the numbers of its runs."""
    out = tmp_path_factory.mktemp("fig1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fig1, "ROUNDS", 200)
        patch.setattr(fig1, "CANDIDATES", {label: members[-1:] for label, members in CANDIDATES.items()})
        yield out, run(SIZE, out, COMMAND, quiet=True)


@pytest.mark.slow
def test_numbers_are_those_of_the_runs(written):
    out, frame = written
    for line in frame.to_dict("records"):
        found = Run.load(out / "runs" / f"softmax-{line['method']}-{line['seed']}.npz")
        rows = found.history.query("client >= 0 and metric == 'accuracy'")
        by_round = rows.pivot(index="round", columns="client", values="value").to_numpy()
        end = by_round[-5:].mean(axis=0)
        assert line["worst"] == pytest.approx(end.min())
        assert line["rare"] == pytest.approx(end[list(RARE)].mean())
        assert line["common"] == pytest.approx(end[:3].mean())
        assert line["rare_all"] == pytest.approx(by_round[1:, RARE].mean())
    assert set(frame["method"]) == {*CANDIDATES, CONTROL}


@pytest.mark.slow
def test_the_control_has_the_mean_weight_in_its_step(written):
    _, frame = written
    of = frame.set_index(["method", "seed"])
    for seed in SIZE.seeds:
        tailed = of.loc[("FedeRage", seed)]
        assert of.loc[(CONTROL, seed), "step"] == pytest.approx(tailed["step"] * tailed["mean_weight"])
        assert tailed["mean_weight"] > 1


def test_one_class_and_one_client_a_cluster_and_empty_rounds():
    one = fig1.setting("softmax")
    _, labels = one.clients.rows("train")
    np.testing.assert_array_equal(labels, np.repeat(np.arange(5), one.clients.counts("train")))
    assert one.law.empty_probability() == pytest.approx(0.7**3 * 0.95**2)
    assert one.law.weights()[3] < 0.05


def test_margins_are_positive_where_the_model_predicts():
    one = fig1.setting("softmax")
    found = one.jobs({"m": FedAvg(step=0.3)}, [0], rounds=60)[0].simulation().run(None, False, False)
    points = np.random.default_rng(0).normal(size=(500, 2)) * 2
    margins = _margins(found, points)
    np.testing.assert_array_equal(margins.argmax(axis=0), found.predict(points))
    assert ((margins > 0).sum(axis=0) <= 1).all()


@pytest.mark.slow
def test_a_stopped_one_goes_on_to_the_same_files(written):
    out, frame = written
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    assert {"regions.png", "rare.svg", "runs.csv", "chosen.csv", "by_round.csv", "section.html"} <= before.keys()
    (out / "runs/softmax-FedeRage-1.npz").unlink()
    (out / "runs.csv").unlink()
    again = run(SIZE, out, COMMAND, quiet=True)
    pd.testing.assert_frame_equal(frame, again)
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()} == before

"""What a run holds: metrics recomputed by hand, files without pickle, predictions in the user's labels."""

import jax
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, log_loss

import fedhedge as fh
from federations import digits, quadratic, same

LAW = fh.availability.presets.sporadic()


@pytest.fixture(scope="module")
def run():
    return fh.simulate(
        fh.algorithms.FedAvg(step=0.2), fh.models.Linear(), digits(), LAW, rounds=25, evaluate_every=10,
        evaluate_on=("validation", "test"), progress=False,
    )  # fmt: skip


def scores(params, X):
    return X.reshape(len(X), -1) @ params["weight"] + params["bias"]


def test_history_is_what_sklearn_computes(run):
    for split in ("validation", "test"):
        last = run.history[(run.history["round"] == 25) & (run.history["split"] == split)]
        for client in [-1, *range(30)]:
            X, y = digits().rows(split, None if client < 0 else client)
            values = scores(run.params, X)
            odds = np.exp(values - values.max(axis=1, keepdims=True))
            seen = last[last["client"] == client].set_index("metric")["value"]
            assert seen["accuracy"] == pytest.approx(accuracy_score(y, values.argmax(axis=1)))
            truth = log_loss(y, odds / odds.sum(axis=1, keepdims=True), labels=range(10))
            assert seen["loss"] == pytest.approx(truth, rel=1e-4)


def test_history_is_tidy_and_has_the_first_and_the_last_round(run):
    assert list(run.history.columns) == ["round", "client", "split", "metric", "value"]
    assert sorted(run.history["round"].unique()) == [0, 10, 20, 25]
    assert not run.history.duplicated(["round", "client", "split", "metric"]).any()
    assert {"average_accuracy", "average_loss"} <= set(run.history.loc[run.history["round"] == 25, "metric"])


def test_averaged_model_is_the_mean_of_the_server_models():
    models = [
        fh.simulate(
            fh.algorithms.FedAvg(step=0.2),
            fh.models.Linear(),
            digits(),
            LAW,
            rounds=rounds,
            evaluate_every=1,
            batch_size=8,
            progress=False,
        )
        for rounds in (1, 2, 3)
    ]
    mean = jax.tree.map(lambda *leaves: np.mean(np.array(leaves, np.float64), axis=0), *(one.params for one in models))
    for left, right in zip(jax.tree.leaves(models[-1].average_params), jax.tree.leaves(mean), strict=True):
        np.testing.assert_allclose(left, right, atol=1e-6)


def test_participation_is_the_schedule_of_the_law(run):
    rows, who = np.nonzero(LAW.schedule(0, 0, 25))
    pd.testing.assert_frame_equal(run.participation, pd.DataFrame({"round": rows, "client": who}))
    np.testing.assert_allclose(run.weights, LAW.weights())


def test_save_and_load(run, tmp_path):
    path = tmp_path / "run.npz"
    run.save(path)
    again = fh.Run.load(path)
    assert same(run.params, again.params)
    assert same(run.average_params, again.average_params)
    pd.testing.assert_frame_equal(run.history, again.history, check_exact=True)
    pd.testing.assert_frame_equal(run.participation, again.participation)
    assert again.summary() == run.summary()
    X, _ = digits().rows("test")
    np.testing.assert_array_equal(run.predict(X), again.predict(X))
    with np.load(path, allow_pickle=False) as archive:
        assert all(not archive[name].dtype.hasobject for name in archive.files)


def test_predicts_in_the_labels_of_the_user():
    X, y = digits().rows("train")
    words = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])[y]
    clients = fh.data.Clients.from_arrays(X.reshape(len(X), -1), words, np.arange(len(y)) % 5)
    run = fh.simulate(
        fh.algorithms.FedAvg(step=0.2),
        fh.models.Linear(),
        clients,
        fh.availability.Everyone(),
        rounds=20,
        progress=False,
    )
    rows, _ = clients.rows("train")
    assert set(run.predict(rows)) <= set(words)
    truth = np.array(clients.classes)[clients.rows("train")[1]]
    assert np.mean(run.predict(rows) == truth) > 0.9
    assert np.mean(run.predict(rows, average=True) == truth) > 0.8


def test_refuses_to_predict_other_shapes_and_without_a_predictor(run):
    with pytest.raises(fh.InvalidInput, match=r"X: received \(3, 5\); allowed: an array of shape \[n, 8, 8, 1\]"):
        run.predict(np.zeros((3, 5)))
    clients, model = quadratic()
    blind = fh.simulate(
        fh.algorithms.FedAvg(), model, clients, fh.availability.Everyone(), rounds=1, batch_size=None, progress=False
    )
    with pytest.raises(fh.InvalidInput, match="a Functional with predict"):
        blind.predict(np.zeros((1, 2)))


def test_own_functions_are_needed_again_to_load(tmp_path):
    clients, model = quadratic()
    run = fh.simulate(
        fh.algorithms.FedAvg(), model, clients, fh.availability.Everyone(), rounds=1, batch_size=None, progress=False
    )
    run.save(tmp_path / "run.npz")
    with pytest.raises(fh.InvalidInput, match="the Functional that the run was made with"):
        fh.Run.load(tmp_path / "run.npz")
    assert fh.Run.load(tmp_path / "run.npz", model=model).params == run.params

"""Native multiclass against one-vs-all: where theory knows who is ahead, and where they are one."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import recall_score

from fedhedge.algorithms import DroAdmm, OneVsAllDro
from fedhedge.evaluation import paired_t
from fedhedge.experiments.dro_correlated import LINE, METHODS, SWEEPS, Sweep, run, worst_recall
from fedhedge.experiments.dro_methods import centralised
from fedhedge.experiments.dro_synthetic import Arc
from fedhedge.experiments.selection import Job, accuracy, score


def test_means_along_the_arc():
    """Neighbours at distance 1; on a line at bend 0, a regular polygon at bend 1."""
    for bend in (0.0, 0.3, 1.0):
        means = Arc(5, bend, 0.1).means()
        np.testing.assert_allclose(np.linalg.norm(np.diff(means, axis=0), axis=1), 1.0)
        np.testing.assert_allclose(means.mean(axis=0), 0.0, atol=1e-12)
    assert np.linalg.matrix_rank(Arc(5, 0.0, 0.1).means()) == 1
    polygon = Arc(5, 1.0, 0.1).means()
    assert np.linalg.norm(polygon[0] - polygon[-1]) == pytest.approx(1.0)
    assert np.ptp(np.linalg.norm(polygon, axis=1)) == pytest.approx(0.0, abs=1e-12)


def test_clients_shares_and_folds():
    whole, folds = Arc(3, 0.5, 0.2, correlation=0.8).problem(0, 3)
    counts = whole.clients.label_counts().to_numpy()
    assert counts.tolist() == [[16, 12, 8], [12, 8, 4], [8, 4, 16], [4, 16, 12]]
    X, _ = whole.clients.rows("train")
    keys = [row.tobytes() for fold in folds for row in fold.features]
    assert sorted(keys) == sorted(row.tobytes() for row in X)
    for fold in folds:
        kept = {row.tobytes() for row in fold.clients.rows("train")[0]}
        assert not kept & {row.tobytes() for row in fold.features}


def test_features_correlate_within_classes():
    arc = Arc(2, 0.0, 0.2, correlation=0.9)
    tested = arc.problem(0, 2).whole
    inner = tested.features[tested.labels == 0]
    assert np.corrcoef(inner[:, 0], inner[:, 1])[0, 1] == pytest.approx(0.9, abs=0.03)


def test_worst_recall_is_scikit_learn_s():
    rng = np.random.default_rng(0)
    labels, predicted = rng.integers(0, 4, (2, 60)).astype(np.int32)
    assert worst_recall(labels, predicted) == pytest.approx(min(recall_score(labels, predicted, average=None)))


@pytest.mark.parametrize("radius", [0.001, 0.05])
def test_two_classes_are_one_problem(radius):
    """One-vs-all solves the binary problem twice: twice the risk, and the same predictions."""
    split = Arc(2, 0.0, 0.4, flipped=0.1).problem(1, 2).whole
    X, y = split.clients.rows("train")
    native, twice = (
        method(radius=radius, norm="l1").solve(X, y, radius, np.zeros((2, X.shape[1])), rho)
        for method, rho in ((DroAdmm, 2e-3), (OneVsAllDro, 1e-3))
    )
    # With m_1 = -m_2 = w/2 the native proximal term at twice the rho is that of one of the two.
    assert twice.risk == pytest.approx(2.0 * native.risk, rel=1e-5)
    np.testing.assert_allclose(native.model, [twice.model[0] / 2, twice.model[1] / 2], atol=1e-4)


def test_only_native_separates_classes_on_a_line():
    """No half-plane holds a class inside the line alone; on a ring one does for each class."""
    for bend, both in ((0.0, False), (1.0, True)):
        split = Arc(4, bend, 0.05).problem(0, 2).whole
        jobs = [Job(method(radius=1e-4, norm="l1"), split.clients, 0) for method in METHODS.values()]
        native, one_vs_all = (score(model, split, accuracy) for model in centralised(jobs))
        assert native > 0.99
        assert (one_vs_all > 0.99) is both


@pytest.mark.slow
def test_files_and_that_it_goes_on(tmp_path):
    short = Arc(3, 0.0, 0.2, per_class=20)
    shown = (Sweep("bend", "bend", (short, Arc(3, 1.0, 0.2, per_class=20))),)
    apart = run(shown, (0, 1), tmp_path, federated=(short,), quiet=True)
    scores = pd.read_csv(tmp_path / "scores.csv")
    assert len(apart) == 3 * (2 + 1)
    for _, line in apart.iterrows():
        own = scores[np.all([scores[name] == line[name] for name in ("bend", "training", "metric")], axis=0)]
        values = own.pivot(index="seed", columns="method", values="value")
        found = paired_t(values["native"], values["one-vs-all"])
        assert (line["difference"], line["low"], line["high"]) == pytest.approx(
            (found.difference, found.low, found.high)
        )
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    (tmp_path / "cells" / "3-0-0.2-0-0-native.json").unlink()
    run(shown, (0, 1), tmp_path, federated=(short,), quiet=True)
    assert {path: path.read_bytes() for path in files} == files


def test_sweeps_name_each_problem_once():
    for sweep in SWEEPS:
        assert len(set(sweep.x)) == len(sweep.arcs)
    assert LINE in SWEEPS[0].arcs

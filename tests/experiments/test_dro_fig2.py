"""Convergence by round: its metrics by hand, an excess that is never negative, and files."""

import numpy as np
import pandas as pd
import pytest

from fedhedge.experiments.dro_fig2 import LINES, Line, _rounds_below, change, consensus_distance, run
from fedhedge.experiments.dro_recorded import Trace, rounds_to_share
from fedhedge.experiments.dro_settings import Setting

SHORT = Setting("iris", "iris", "centred", "accuracy", 6, 0.5)


def test_metrics_by_hand():
    center = np.array([[[0.0, 0.0]], [[3.0, 4.0]], [[3.0, 0.0]]])
    models = np.stack([center + np.array([0.0, 1.0]), center - np.array([2.0, 0.0])], axis=1)
    trace = Trace(center, center, models)
    np.testing.assert_allclose(consensus_distance(trace), [1.5 / 5, 1.5 / 3])
    np.testing.assert_allclose(change(trace), [1.0, 4 / 3])


def test_rounds_to_thresholds():
    assert rounds_to_share(np.array([0.1, 0.94, 0.96, 0.9, 1.0]), 0.95) == 2
    relative = np.array([[0.2, 0.3], [0.05, 0.2], [0.2, 0.2]])
    assert _rounds_below(relative, 0.1) == "2 (1 of 2 seeds)"
    assert _rounds_below(relative, 0.01) == "never"
    assert _rounds_below(relative, 0.2) == "1.5 ± 6.4"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("fig2")
    return out, run(SHORT, LINES[:3], (0, 1), out, quiet=True)


@pytest.mark.slow
def test_no_excess_is_negative_and_exact_consensus_is_nearest(made):
    _, frame = made
    excess = frame[frame["metric"] == "excess"].pivot(index="round", columns=["method", "seed"], values="value")
    assert excess.to_numpy().min() >= -1e-6
    last = excess.iloc[-1]
    assert (last["exact"] < last["exact-paper"]).all()
    assert (last["exact"] < last["default"]).all()
    distance = frame[frame["metric"] == "primal"].pivot(index="round", columns=["method", "seed"], values="value")
    # Noise keeps the clients apart.
    assert distance["default"].iloc[-1].min() > distance["exact"].iloc[-1].max()


@pytest.mark.slow
def test_it_goes_on_where_it_was_stopped(made):
    out, _ = made
    files = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert {"convergence.csv", "optimum.csv", "dro-fig2.png", "dro-fig2.svg", "section.html"} <= {p.name for p in files}
    (out / "cells" / "default.json").unlink()
    run(SHORT, LINES[:3], (0, 1), out, quiet=True)
    assert {path: path.read_bytes() for path in files} == files
    optima = pd.read_csv(out / "optimum.csv")
    assert optima.columns.tolist() == ["seed", "l1"]


def test_lines_are_measured_by_the_norm_that_they_are_made_for():
    for line in LINES:
        assert isinstance(line, Line)
        algorithm = line.make(SHORT.privacy, 6)
        assert (algorithm.radius, algorithm.label_cost, algorithm.norm) == line.robust

"""Accuracy against the privacy parameters: budgets on the upper axis, equal budgets, and files."""

import numpy as np
import pandas as pd
import pytest

from fedhedge.algorithms import DpSgd
from fedhedge.experiments import dro_fig1
from fedhedge.experiments.dro_fig1 import DELTAS, EPSILONS, PRIVATE, ROUNDS, Sweep, setting, sweeps
from fedhedge.experiments.dro_methods import Method
from fedhedge.privacy import NoiseMultipliers, Privacy, calibrate, spent

WHOLE = sweeps(EPSILONS, DELTAS)


def paper_noise(column):
    return calibrate(
        Privacy(column.per_round, column.delta, per="round"), column.rounds, lambda_share=0.05, accounting="paper"
    )


@pytest.mark.parametrize("panel", WHOLE, ids=lambda panel: panel.axis)
def test_totals_are_what_the_paper_s_noise_spends(panel):
    """By both accountings, from the paper's noise itself."""
    for column, (stated, exact) in zip(panel.settings, panel.totals(), strict=True):
        noise = paper_noise(column)
        assert exact == pytest.approx(spent(noise, ROUNDS, column.delta), rel=1e-9)
        assert stated == pytest.approx(spent(noise, ROUNDS, column.delta, accounting="paper"), rel=1e-6)
        assert exact < stated


def test_every_private_candidate_spends_the_same():
    for column in (WHOLE[0].settings[0], WHOLE[1].settings[-1]):
        for method in PRIVATE:
            for candidate in method.candidates(column.privacy, column.rounds):
                noise = NoiseMultipliers(candidate.noise, getattr(candidate, "lambda_noise", 0.0) or None)
                assert spent(noise, ROUNDS, column.delta) == pytest.approx(column.privacy.epsilon, rel=1e-6)


def test_rounds_stay_where_the_paper_s_claim_is_proven():
    assert max(EPSILONS) < 1
    assert all(column.rounds == 150 for panel in WHOLE for column in panel.settings)


@pytest.fixture
def tiny(monkeypatch):
    def candidates(privacy, rounds):
        return (DpSgd.calibrated(privacy, rounds, step=2.0),)

    two = (Method("dp-sgd", "SGD", candidates), Method("again", "the same", candidates))
    for name, value in (("LINES", two), ("PRIVATE", two), ("DRAWN", two), ("OURS", two[0]), ("REFERENCE", "again")):
        monkeypatch.setattr(dro_fig1, name, value)
    return (Sweep("epsilon", tuple(setting(e, 1e-6, rounds=5) for e in (0.02, 0.5))),)


@pytest.mark.slow
def test_the_figure_s_axis_and_files_and_that_it_goes_on(tiny, tmp_path, monkeypatch):
    drawn = []
    original = dro_fig1.plot

    def kept(*arguments):
        drawn.append(original(*arguments))
        return drawn[-1]

    monkeypatch.setattr(dro_fig1, "plot", kept)
    accuracy = dro_fig1.run(tiny, (0, 1), 2, tmp_path, quiet=True)
    budgets = pd.read_csv(tmp_path / "budgets.csv")
    above = drawn[0].figure.axes[0].child_axes[0]
    shown = [label.get_text().split("\n") for label in above.get_xticklabels()]
    assert above.get_xticks().tolist() == budgets["x"].tolist() == [0.02, 0.5]
    for (stated, exact), (_, line) in zip(shown, budgets.iterrows(), strict=True):
        assert float(stated) == pytest.approx(line["stated"], rel=5e-3)
        assert float(exact) == pytest.approx(line["exact"], rel=5e-3)
    for column, exact in zip(tiny[0].settings, budgets["exact"], strict=True):
        assert exact == pytest.approx(spent(paper_noise(column), 5, 1e-6))
    # The same method twice: the same seeds, noise and numbers.
    values = accuracy.pivot(index=["x", "seed"], columns="method", values="value")
    np.testing.assert_array_equal(values["dp-sgd"], values["again"])
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    (tmp_path / "cells" / "0.5-1e-06-again.json").unlink()
    dro_fig1.run(tiny, (0, 1), 2, tmp_path, quiet=True)
    assert {path: path.read_bytes() for path in files} == files
    assert {path.name for path in files} >= {"accuracy.csv", "dro-fig1.png", "dro-fig1.svg", "report.html"}

"""The check of the theorems: its optimum, its files, and that excesses are above nothing."""

import numpy as np
import pandas as pd
import pytest

from fedhedge.experiments import federage_theory
from fedhedge.experiments.federage_theory import LAWS, TAILS, Cell, excess, main, smallest, value

pytestmark = pytest.mark.filterwarnings("ignore:FedeRage")


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("alpha", "gamma"), TAILS)
def test_no_pair_is_below_the_optimum(law, alpha, gamma):
    """Random pairs near and far; beta at the quantile makes eq. (13) the mean-CVaR itself."""
    rng = np.random.default_rng(0)
    cell = Cell(law, alpha, gamma, 1)
    best = smallest(law, alpha, gamma)
    for _ in range(200):
        assert value(rng.normal(size=2), rng.uniform(0, 2), cell) >= best - 1e-9


def test_excess_is_positive_and_small_after_a_while():
    found = excess(Cell("fixed size", 0.2, 0.8, 2_000), range(4))
    assert (found > 0).all()
    assert found.mean() < 0.02


@pytest.mark.slow
def test_files_and_slopes(tmp_path, monkeypatch):
    monkeypatch.setattr(federage_theory, "HORIZONS", (50, 200))
    monkeypatch.setattr(federage_theory, "SEEDS", 2)
    monkeypatch.setattr(federage_theory, "TAILS", TAILS[:2])
    slopes = main(tmp_path, quiet=True)
    table = pd.read_csv(tmp_path / "excess.csv")
    assert len(table) == 2 * 2 * 2
    for _, line in slopes.iterrows():
        part = table[(table.law == line["law"]) & (table.kappa == line["kappa"])]
        first, last = part["excess"]
        assert line["slope"] == pytest.approx(np.log(last / first) / np.log(4))
    assert (tmp_path / "excess.png").stat().st_size > 5_000
    assert "<svg" in (tmp_path / "excess.svg").read_text()


def test_what_was_done_before_a_stop_is_not_done_again(tmp_path, monkeypatch):
    """Excesses that count up: the second run goes on with the third cell, and the table has all in order."""
    monkeypatch.setattr(federage_theory, "HORIZONS", (50, 200))
    monkeypatch.setattr(federage_theory, "SEEDS", 2)
    monkeypatch.setattr(federage_theory, "TAILS", TAILS[:2])
    made = []

    def counted(cell, seeds):
        if len(made) == 2 and not stopped:
            stopped.append(cell)
            raise KeyboardInterrupt
        made.append(cell)
        return np.array([float(len(made))] * len(seeds))

    stopped = []
    monkeypatch.setattr(federage_theory, "excess", counted)
    with pytest.raises(KeyboardInterrupt):
        main(tmp_path, quiet=True)
    main(tmp_path, quiet=True)
    assert len(made) == len(set(made)) == 8
    assert pd.read_csv(tmp_path / "excess.csv")["excess"].tolist() == list(range(1, 9))

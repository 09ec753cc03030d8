"""Time to peak accuracy: the synthetic classes, the fit, and how the columns belong together."""

import numpy as np
import pandas as pd
import pytest

from fedhedge.algorithms import DpSgd, DroAdmm
from fedhedge.experiments.dro_fig3 import Method, exponent, fits, regimes, run
from fedhedge.experiments.dro_recorded import rounds_to_share
from fedhedge.experiments.dro_synthetic import Spread
from fedhedge.privacy import Privacy


def test_clients_have_their_rows_and_their_class():
    problem = Spread(6, 50, 4, flipped=0.0)
    clients = problem.split(3).clients
    counts = clients.label_counts().to_numpy()
    assert counts.sum(axis=1).tolist() == [50] * 6
    assert counts.argmax(axis=1).tolist() == [0, 1, 2, 3, 0, 1]
    assert counts.min() > 0
    wrong = Spread(6, 50, 4, flipped=0.1).split(3).clients
    assert (wrong.rows("train")[1] != clients.rows("train")[1]).sum() == 6 * 5
    assert np.linalg.norm(clients.rows("train")[0], axis=1).max() <= 1 + 1e-12


def test_regimes_hold_what_they_say_fixed():
    each, of_all, classes = regimes((2, 4), (3, 5))
    assert {problem.rows for problem in each.problems} == {100}
    assert {problem.rows * problem.clients for problem in of_all.problems} == {1600}
    assert {problem.clients for problem in classes.problems} == {4}
    assert (each.x, classes.x) == ([2, 4], [3, 5])


def test_exponents_of_known_growth():
    x = np.array([1.0, 2.0, 4.0, 8.0])
    assert exponent(x, 3 * x) == (pytest.approx(1.0), pytest.approx(0.0, abs=1e-6))
    slope, half = exponent(x, x**2 * np.exp([0.1, -0.1, -0.1, 0.1]))
    assert abs(slope - 2) < half


def test_the_table_of_growth_says_what_was_put_in():
    """Processor time 2 x + 1 and clock time x^2 of four points; of two points nothing about a line can be said."""
    shown = (regimes((2, 4, 8, 16), ())[0], regimes((), (3, 5))[2])
    frames = [
        pd.DataFrame({"regime": one.name, "x": one.x, "method": "sgd"}).assign(
            cpu=lambda part: 2.0 * part["x"] + 1.0,
            seconds=lambda part: part["x"] ** 2.0,
            to_peak=lambda part: part["x"],
        )
        for one in shown
    ]
    clients, classes = fits(shown, TWO[:1], pd.concat(frames)).rows
    assert clients[:2] == ["SGD", "clients, 100 rows each"]
    assert clients[3:] == ["2.00 ± 0.00", "100.0", "2.0 to 16.0"]
    assert 0.8 < float(clients[2].split()[0]) < 1.0
    assert classes[:2] == ["SGD", "classes"]
    assert classes[3:] == ["2.00", "–", "3.0 to 5.0"]


TWO = (
    Method("sgd", "SGD", lambda: DpSgd.calibrated(Privacy(5.0, 1e-6), 8), 8),
    Method("dro", "exact", lambda: DroAdmm(norm="l1", tolerance=0.0), 3),
)


@pytest.mark.slow
def test_files_belong_together_and_stay(tmp_path):
    shown = regimes((2, 4), (3,))[:1]
    times = run(shown, TWO, (0, 1), tmp_path, quiet=True)
    assert len(times) == 2 * 2
    assert (times[["seconds", "cpu"]] > 0).to_numpy().all()
    np.testing.assert_allclose(times["seconds_to_peak"], times["seconds"] * times["to_peak"] / times["rounds"])
    curves = pd.read_csv(tmp_path / "accuracy.csv")
    for _, line in times.iterrows():
        own = curves[(curves["regime"] == line["regime"]) & (curves["x"] == line["x"])]
        own = own[own["method"] == line["method"]].pivot(index="round", columns="seed", values="value")
        assert len(own) == line["rounds"] + 1
        assert line["to_peak"] == np.mean([rounds_to_share(own[seed].to_numpy()) for seed in own])
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    run(shown, TWO, (0, 1), tmp_path, quiet=True)
    assert {path: path.read_bytes() for path in files} == files

"""Table I: its numbers from runs made by hand, the control's weight, and the whole on a small federation."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import fedhedge as fh
from evaluation.made_runs import make_run
from fedhedge.experiments import federage_table
from fedhedge.experiments.federage_size import Size
from fedhedge.experiments.federage_table import CONTROL, run
from fedhedge.experiments.federage_table_text import against, summary
from fedhedge.report.study import Study

SEEDS, EVALUATIONS, CLIENTS = 3, 14, 6


@pytest.fixture(scope="module")
def made():
    """Accuracies [seeds, evaluations, clients] by method, and runs of them."""
    rng = np.random.default_rng(1)
    tables = {name: rng.uniform(0.2, 0.9, (SEEDS, EVALUATIONS, CLIENTS)) for name in ("FedAvg", "FedeRage")}
    runs = {
        name: [make_run(table[s], seed=s, algorithm={"name": name}) for s in range(SEEDS)]
        for name, table in tables.items()
    }
    return tables, Study.of(runs, (4, 5), target=0.5, last=10)


def test_means_deviations_and_the_z_test_are_those_of_the_last_ten(made):
    tables, study = made
    table = summary(study, "uniform").set_index("method")
    last = {name: values[:, -10:].mean(axis=2).ravel() for name, values in tables.items()}
    for name, values in last.items():
        assert table.loc[name, "mean"] == pytest.approx(values.mean())
        assert table.loc[name, "sd"] == pytest.approx(values.std(ddof=1))
        assert table.loc[name, "worst_client"] == pytest.approx(
            np.mean([tables[name][s, -10:].mean(axis=0).min() for s in range(SEEDS)])
        )
    ours, theirs = last["FedeRage"], last["FedAvg"]
    z = (ours.mean() - theirs.mean()) / np.sqrt(ours.var(ddof=1) / len(ours) + theirs.var(ddof=1) / len(theirs))
    assert table.loc["FedAvg", "z_p"] == pytest.approx(2 * stats.norm.sf(abs(z)))


def test_differences_are_paired_by_seed(made):
    tables, study = made
    found = against(study, "uniform").set_index("measure")
    end = {name: values[:, -10:].mean(axis=1) for name, values in tables.items()}
    for view, measure in {
        "client mean": lambda t: t.mean(axis=1),
        "worst client": lambda t: t.min(axis=1),
        "rare mean": lambda t: t[:, 4:].mean(axis=1),
    }.items():
        apart = measure(end["FedeRage"]) - measure(end["FedAvg"])
        assert found.loc[view, "difference"] == pytest.approx(apart.mean())
        assert found.loc[view, "p_value"] == pytest.approx(stats.ttest_1samp(apart, 0).pvalue)


@pytest.fixture(scope="module")
def small_clients():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 4))
    return fh.data.Clients.from_arrays(X, (X @ [1, -1, 0.5, 0] > 0).astype(int), np.repeat(np.arange(30), 20))


@pytest.mark.slow
def test_the_whole_on_a_small_federation(small_clients, tmp_path, monkeypatch):
    class Source:
        def partition(self, rule, seed):
            return small_clients

    monkeypatch.setattr(federage_table, "load", lambda name: Source())
    monkeypatch.setattr(federage_table, "METHODS", federage_table.METHODS[:1] + federage_table.METHODS[3:])
    size = Size("made", fh.models.Linear(), 8, 2, (0, 1), 4, (100,), laws=("skewed",))
    table = run(size, tmp_path, quiet=True)
    assert list(table["method"]) == ["FedAvg", "FedeRage", CONTROL]
    chosen = json.loads((tmp_path / "chosen.json").read_text())["skewed"]
    searched = pd.read_csv(tmp_path / "search.csv")
    best = searched[searched.method == "FedAvg"].sort_values("score").iloc[-1]
    assert (
        best["score"]
        == searched[
            (searched.method == "FedAvg")
            & np.isclose(searched.step, chosen["FedAvg"]["step"])
            & (searched.local_steps == chosen["FedAvg"]["local_steps"])
        ]["score"].max()
    )
    # Nothing of the reported seeds or test rows is in the search.
    for path in (tmp_path / "search").rglob("*.npz"):
        kept = fh.Run.load(path)
        assert kept.settings["seed"] == 100
        assert kept.settings["evaluate_on"] == ["validation"]
    control = [fh.Run.load(path) for path in (tmp_path / "runs" / "skewed").glob("FedAvg-*.npz")]
    steps = {found.settings["algorithm"]["step"] for found in control}
    assert len(steps) == 2
    assert all(
        (tmp_path / f"skewed-{name}.{end}").is_file()
        for name in ("client-mean", "clients", "traffic")
        for end in ("png", "svg")
    )
    page = (tmp_path / "report.html").read_bytes()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")}
    run(size, tmp_path, quiet=True)
    assert (tmp_path / "report.html").read_bytes() == page
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")}

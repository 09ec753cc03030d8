"""The grid of alpha and gamma: its borders are FedAvg, its table is paired, and a stopped one goes on."""

import jax
import numpy as np
import pandas as pd
import pytest

import fedhedge as fh
from fedhedge.data import MissingData
from fedhedge.evaluation import paired_t
from fedhedge.experiments import federage_sensitivity as sensitivity
from fedhedge.experiments.federage_heatmap import heatmaps
from fedhedge.experiments.federage_sensitivity import LAWS, MEASURES, Size, Source, main, rule, run, settings
from fedhedge.report import style

SOURCE = Source("digits", 20, True)
SMALL = Size((SOURCE,), (0.1, 0.5), (0.5,), (0, 1), (100,))


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_the_borders_of_the_grid_are_fedavg_bit_for_bit(law):
    """gamma = 0 for any alpha, and alpha = 1 for any gamma."""
    one = settings(SOURCE)[law]

    def trained(method):
        return one.jobs({"m": method}, [3])[0].simulation().run(None, False, False)

    expected = trained(rule(1.0, 0.0, 0.3))
    for alpha, gamma in ((0.05, 0.0), (1.0, 0.5)):
        scale = 0.3 / (1 - gamma + gamma / alpha)
        found = trained(fh.algorithms.FedeRage(alpha=alpha, gamma=gamma, step=scale, beta_step=0.01))
        jax.tree.map(np.testing.assert_array_equal, found.params, expected.params)
    other = trained(rule(0.05, 0.5, 0.3))
    assert not np.array_equal(other.params["weight"], expected.params["weight"])


def test_one_rule_for_the_step():
    for alpha, gamma in ((0.01, 0.9), (0.5, 0.1)):
        method = rule(alpha, gamma, 0.3)
        assert method.step * method.kappa == pytest.approx(0.3)
    assert rule(1.0, 0.0, 0.3) == fh.algorithms.FedAvg(step=0.3)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A small grid: its folder and its table."""
    out = tmp_path_factory.mktemp("grid")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sensitivity, "SCALES", (0.1, 0.3))
        patch.setattr(sensitivity, "JUDGED", ((1.0, 0.0), (0.1, 0.5)))
        table = run(SMALL, out, "fedhedge reproduce federage-sensitivity", quiet=True)
        yield out, table


@pytest.mark.slow
def test_the_table_is_paired_with_fedavg_of_the_same_seed(written):
    out, table = written
    runs = pd.read_csv(out / "runs.csv")
    assert len(runs) == len(LAWS) * (1 + 2) * 2
    for line in table.to_dict("records"):
        place = runs[(runs["data"] == line["data"]) & (runs["law"] == line["law"])]
        own = place[(place["alpha"] == line["alpha"]) & (place["gamma"] == line["gamma"])]
        base = place[place["gamma"] == 0]
        found = paired_t(own[line["measure"]], base[line["measure"]])
        assert (line["difference"], line["low"], line["high"]) == pytest.approx(
            (found.difference, found.low, found.high), abs=1e-9
        )
    chosen = pd.read_csv(out / "chosen.csv")
    means = chosen.groupby("scale")["score"].mean()
    assert set(chosen.loc[chosen["chosen"], "scale"]) == {means.idxmax()}


@pytest.mark.slow
def test_a_stopped_grid_goes_on_to_the_same_files(written):
    out, _ = written
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    for path in [*(out / "runs").glob("digits-skewed-0.1-*"), *out.glob("*.csv"), *out.glob("*.png")]:
        path.unlink()
    run(SMALL, out, "fedhedge reproduce federage-sensitivity", quiet=True)
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()} == before


def test_a_missing_data_set_is_said_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDHEDGE_DATA", str(tmp_path / "none"))
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(MissingData, match="fashion-mnist"):
        main(out, quiet=True)
    assert list(out.iterdir()) == []


def test_a_heat_map_shows_the_numbers_of_its_cells():
    cells = [(1.0, 0.0, 0.5), (0.1, 0.5, 0.625), (0.2, 0.5, 0.75)]
    table = pd.DataFrame(
        [(a, g, m, v) for a, g, v in cells for m in MEASURES], columns=["alpha", "gamma", "measure", "mean"]
    )
    with style.settings():
        plot = heatmaps("grid", "some", table, MEASURES)
    axes = plot.figure.axes[0]
    texts = {(round(t.get_position()[0] - 0.5), round(t.get_position()[1] - 0.5)): t.get_text() for t in axes.texts}
    # Columns alpha .1, .2, 1; rows gamma 0, .5.
    assert texts == {(0, 0): "50.0", (1, 0): "50.0", (2, 0): "50.0", (0, 1): "62.5", (1, 1): "75.0", (2, 1): "50.0"}
    shades = {(p.get_x(), p.get_y()): p.get_alpha() for p in axes.patches}
    assert max(shades, key=shades.get) == (1, 1)
    # A loss is the better the smaller.
    losses = {(p.get_x(), p.get_y()): p.get_alpha() for p in plot.figure.axes[3].patches}
    assert min(losses, key=losses.get) == (1, 1)
    assert "best 75.00 at alpha 0.2, gamma 0.5" in plot.alt

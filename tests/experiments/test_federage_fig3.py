"""Fig. 3: its files, what they say at the ends of the range of alpha, and that a stopped one goes on."""

import numpy as np
import pytest

from fedhedge.evaluation import paired_t
from fedhedge.experiments import federage_fig3 as fig3
from fedhedge.experiments.federage_fig3 import ALPHAS, CLIENTS, GIVEN, NONE, SIZES, WEIGHTS, Size, exact


def test_the_ends_of_the_exact_part():
    found = exact()
    dual, optima = found["dual_weights"], found["optimum_by_b"]
    sums = dual.groupby("alpha")["weight"].sum()
    np.testing.assert_allclose(sums, 1.0)
    np.testing.assert_allclose(dual.loc[dual["alpha"] == 1.0, "weight"], WEIGHTS, atol=1e-9)
    assert (dual["weight"] <= np.asarray(WEIGHTS)[dual["client"]] / dual["alpha"] + 1e-9).all()
    assert len(optima) == len(SIZES) * len(ALPHAS)
    assert (optima["regret_of_b1"] >= -1e-9).all()
    assert (optima.loc[optima["b"] == 1, "regret_of_b1"].abs() < 1e-9).all()
    losses = optima[[f"loss_{i}" for i in range(CLIENTS)]].to_numpy()
    np.testing.assert_allclose(losses @ WEIGHTS, optima["mean_loss"])


@pytest.mark.slow
def test_files_and_going_on(tmp_path, monkeypatch):
    monkeypatch.setattr(fig3, "MEASURED", (0.4, 1.0))
    monkeypatch.setattr(fig3, "REAL_ALPHAS", (0.1, 0.5))
    small = Size(200, 40, (4, 32), (0, 1), (100,))

    def made():
        data = fig3.exact() | fig3.measured(small, tmp_path, True) | fig3.real(small, tmp_path, True)
        fig3.write_section(tmp_path, fig3._section(small, data, "fedhedge reproduce federage-fig3"))
        return data, {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}

    data, before = made()
    tail = data["tail_steps"]
    np.testing.assert_allclose(tail.groupby(["alpha", "seed"])[["tail_share", "step_share"]].sum(), 1.0)
    # At alpha = 1 all steps whose loss is above beta = 0 are in the tail.
    whole = tail[tail["alpha"] == 1.0]
    np.testing.assert_allclose(whole["tail_share"], whole["step_share"])
    steps = data["digits_tail_steps"]
    np.testing.assert_allclose(steps.groupby("seed")[["p", "step_share", "tail_share", "weight"]].sum(), 1.0)
    digits, apart = data["digits"], data["digits_differences"]
    ours, theirs = (digits[(digits["b"] == 4) & (digits["method"] == m)]["mean"] for m in (GIVEN, NONE))
    line = apart[(apart["b"] == 4) & (apart["method"] == GIVEN) & (apart["minus"] == NONE)].iloc[0]
    assert line["difference"] == pytest.approx(paired_t(ours, theirs).difference)
    for path in [*(tmp_path / "runs").glob("*-1.npz"), *(tmp_path / "counts").glob("*-0.json")]:
        path.unlink()
    assert made()[1] == before

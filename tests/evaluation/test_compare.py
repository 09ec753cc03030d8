import math

import numpy as np
import pytest

from evaluation.made_runs import make_run
from fedhedge.checks import InvalidInput
from fedhedge.evaluation import as_text, compare

RNG = np.random.default_rng(5)
TABLES = RNG.random((2, 3, 4, 10))


def methods(**settings):
    return {
        name: [
            make_run(table, seed=seed, algorithm={"name": name}, uplink=uplink, **settings)
            for seed, table in enumerate(tables)
        ]
        for name, tables, uplink in zip(("FedAvg", "Scaffold"), TABLES, (100, 200), strict=True)
    }


def test_every_number_is_the_one_recomputed():
    groups = methods()
    table = compare([run for runs in groups.values() for run in runs], rare=[8, 9], last=2, worst=2, alpha=0.25)
    for label, tables in zip(("FedAvg", "Scaffold"), TABLES, strict=True):
        values = np.sort(tables[:, -2:].mean(axis=1), axis=1)
        rare = tables[:, -2:].mean(axis=1)[:, [8, 9]].mean(axis=1)
        row = table.loc[label]
        assert row["seeds"] == 3
        assert row["mean"] == pytest.approx(values.mean())
        assert row["mean_sd"] == pytest.approx(np.std(values.mean(axis=1), ddof=1))
        assert row["worst_client"] == pytest.approx(values[:, 0].mean())
        assert row["worst_mean"] == pytest.approx(values[:, :2].mean())
        assert row["rare"] == pytest.approx(rare.mean())
        assert row["rare_sd"] == pytest.approx(np.std(rare, ddof=1))
        assert row["client_sd"] == pytest.approx(values.std(axis=1).mean())
        assert row["cvar"] == pytest.approx(((values[:, 0] + values[:, 1] + 0.5 * values[:, 2]) / 2.5).mean())
        assert row["loss"] == pytest.approx(1 - values.mean())
        assert row["pooled"] == pytest.approx(values.mean())
    assert table["uplink"].tolist() == [100, 200]
    assert compare(groups, rare=[8, 9], last=2, worst=2, alpha=0.25).equals(table)


def test_a_run_that_never_arrives_is_slower_than_all_others():
    curves = [[0.0, 0.9, 0.9], [0.0, 0.1, 0.9], [0.0, 0.1, 0.1]]
    runs = [make_run(np.reshape(curve, (3, 1)), seed=seed) for seed, curve in enumerate(curves)]
    row = compare(runs, target=0.8).loc["FedAvg"]
    assert (row["rounds_to_target"], row["reached"]) == (20.0, "2 of 3")
    row = compare(runs[1:], target=0.8).loc["FedAvg"]
    assert (row["rounds_to_target"], row["reached"]) == (math.inf, "1 of 2")


def test_uplink_a_round_counts_who_got_through():
    run = make_run([[0.5, 0.5]] * 2, every=4, through=[(0, 0), (0, 1), (2, 1)], uplink=10)
    assert compare([run]).loc["FedAvg", "uplink_per_round"] == pytest.approx(10 * 3 / 4)


def test_without_predictions_the_loss_is_compared_and_the_largest_is_the_worst():
    table = compare([make_run(loss=[[1.0, 2.0, 4.0]])], alpha=0.5)
    row = table.loc["FedAvg"]
    assert (row["metric"], row["worst_client"], row["cvar"]) == ("loss", 4.0, pytest.approx((4 + 0.5 * 2) / 1.5))
    assert "loss" in as_text(table)
    assert "accuracy" not in as_text(table)


def test_missing_clients_and_single_seeds_are_nan_only_where_they_must():
    row = compare([make_run([[0.4, np.nan, 0.8]])], rare=[1]).loc["FedAvg"]
    assert row["mean"] == pytest.approx(0.6)
    assert math.isnan(row["rare"])
    assert math.isnan(row["mean_sd"])


def test_runs_with_different_evaluation_rounds_are_taken_at_their_own_ends():
    short, long = make_run([[0.1], [0.5]], every=5), make_run([[0.1], [0.2], [0.9]], every=7)
    assert compare({"short": [short], "long": [long]})["mean"].tolist() == [0.5, 0.9]


def test_an_unknown_rare_client_is_refused():
    with pytest.raises(InvalidInput, match=r"rare: received 10"):
        compare(methods(), rare=[10])


def test_text_is_aligned_and_holds_the_numbers():
    table = compare(methods(), rare=[8, 9], target=0.5)
    text = as_text(table)
    lines = text.split("\n")
    assert max(map(len, lines)) <= 100
    mean, sd = (100 * table.loc["Scaffold", name] for name in ("mean", "mean_sd"))
    assert lines[-1].startswith(f"Scaffold  {mean:.1f} ± {sd:.1f}")
    assert [line for line in lines if "weighted" in line] == []
    # The last column ends where its titles end.
    assert len({len(line) for line in lines[:2] + lines[3:]}) == 1
    for empty in ("rare", "rounds to"):
        assert empty in text
        assert empty not in as_text(compare(methods()))


def test_text_names_a_weighting_that_is_not_uniform_and_gives_long_labels_their_own_line():
    groups = {f"{name} with a long label": runs for name, runs in methods(weighting="rows").items()}
    lines = as_text(compare(groups)).split("\n")
    assert lines[0].endswith("weighted")
    assert lines[3] == "FedAvg with a long label"
    assert lines[4].endswith("rows")
    assert lines[4].startswith("  ")

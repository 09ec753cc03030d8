import numpy as np

from evaluation.made_runs import make_run
from fedhedge.report.notes import notes
from fedhedge.report.study import Study
from report.studies import federation

HALF = [[0.5, 0.5]] * 3


def said(runs):
    return notes(Study.of(runs))


def two_seeds(**arguments):
    return [make_run(HALF, seed=seed, inclusion=[0.5, 0.5], through=spread(), **arguments) for seed in (0, 1)]


def spread():
    return [(t, t % 2) for t in range(20)]


def test_nothing_is_said_when_nothing_is_wrong():
    assert said(two_seeds()) == []
    assert said(federation()) == []


def test_single_seeds_and_unequal_conditions():
    one = make_run(HALF, inclusion=[0.5, 0.5], through=spread())
    assert said([one]) == ["One seed says nothing about the spread between seeds."]
    other = [make_run(HALF, seed=seed, algorithm={"name": "B"}, batch_size=32) for seed in (1, 2)]
    found = said({"A": two_seeds(batch_size=None), "B": other})
    assert "The runs differ in more than the method: batch_size." in found
    assert "The methods were not run on the same seeds." in found


def test_weighting_is_named_once_when_it_is_that_of_all():
    by_rows = two_seeds(weighting="rows")
    start = "Uploads were weighted by rows, so that p is not the weight of a client: "
    assert f"{start}A (rows)." in said({"A": by_rows, "B": two_seeds()})
    assert f"{start}all methods (rows)." in said({"A": by_rows, "B": two_seeds(weighting="rows")})


def test_skipped_uploads_and_empty_rounds_are_counted():
    found = said({"A": two_seeds(skipped=3, empty_rounds=2)})
    assert "Uploads that were not finite were left out: A (6 of 40)." in found
    assert "Rounds in which nobody got through, and which changed nothing: A (4 of 40)." in found


def test_who_never_came_and_who_came_too_often():
    # 40 of 40 rounds at P = 1/2 is z = 6.3; 0 of 40 is -6.3.
    found = said([make_run(HALF, seed=seed, inclusion=[0.5, 0.5], weights=[0.5, 0.5]) for seed in (0, 1)])
    assert "Never got through: FedAvg (client 1)." in found
    assert "Got through far from as often as the law of availability says: FedAvg (clients 0, 1)." in found


def test_clients_without_rows_and_models_without_predictions():
    missing = np.array(HALF)
    missing[:, 1] = np.nan
    assert any("for want of test rows: client 1" in note for note in said([make_run(missing)]))
    assert any("all numbers are losses" in note for note in said([make_run(loss=HALF)]))


def test_a_tail_far_from_alpha_has_not_settled():
    def tail(rates):
        method = {"name": "FedeRage", "alpha": 0.1}
        return [
            make_run(
                [[0.5, 0.5]] * 5,
                seed=seed,
                algorithm=method,
                inclusion=[0.5, 0.5],
                through=[(t, t % 2) for t in range(40)],
                server={("train", "tail_rate"): rates},
            )
            for seed in (0, 1)
        ]

    assert said(tail([0.9, 0.5, 0.1, 0.12])) == []
    (found,) = said(tail([0.1, 0.1, 0.01, 0.03]))
    assert "FedeRage (seed 0: 2 % against 10 %, seed 1: 2 % against 10 %)" in found


def test_warnings_of_the_method_are_repeated_once():
    found = said({"A": two_seeds(said=("too few rounds",)), "B": two_seeds()})
    assert [line for line in found if "Said before the run" in line] == ["Said before the run: A (too few rounds)."]


def test_reports_that_were_left_out_are_counted_apart():
    runs = two_seeds(skipped=3)
    for run in runs:
        run.counts.update(probes=50, skipped_reports=4)
    found = said({"A": runs})
    assert "Uploads that were not finite were left out: A (6 of 40)." in found
    assert "Reports that were not finite were left out: A (8 of 100)." in found

import numpy as np
import pytest

from evaluation.made_runs import make_run
from fedhedge.checks import InvalidInput
from fedhedge.evaluation import by_client, higher_is_better, over_all, per_client

ACCURACY = [[0.1, 0.2], [0.4, 0.6], [0.8, 1.0]]


def test_the_last_evaluation_and_the_mean_over_the_last_ones():
    run = make_run(ACCURACY, every=5)
    assert per_client(run).to_dict() == {0: 0.8, 1: 1.0}
    assert per_client(run, last=2).tolist() == pytest.approx([0.6, 0.8])
    assert per_client(run, round=5).tolist() == [0.4, 0.6]
    assert per_client(run, round=5, last=2).tolist() == pytest.approx([0.25, 0.4])
    assert per_client(run, "loss").tolist() == pytest.approx([0.2, 0.0])


def test_a_client_without_rows_stays_nan_and_others_are_untouched():
    table = np.array(ACCURACY)
    table[:, 1] = np.nan
    assert per_client(make_run(table), last=3).tolist() == pytest.approx([1.3 / 3, np.nan], nan_ok=True)


def test_tables_by_round_keep_clients_apart_from_the_value_over_all():
    run = make_run(ACCURACY, every=5)
    assert by_client(run).to_numpy().tolist() == ACCURACY
    assert by_client(run).index.tolist() == [0, 5, 10]
    assert over_all(run).to_dict() == pytest.approx({0: 0.15, 5: 0.5, 10: 0.9})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metric": "acuracy"}, r"metric: received 'acuracy'; allowed: accuracy, loss \(did you mean accuracy\?\)"),
        ({"split": "validation"}, "split: received 'validation'; allowed: test"),
        ({"round": 7}, "round: received 7; allowed: 0, 5, 10"),
        ({"last": 4}, "last: received 4; allowed: a whole number from 1 to 3"),
        ({"round": 5, "last": 3}, "last: received 3; allowed: a whole number from 1 to 2"),
    ],
)
def test_what_was_not_measured_is_refused(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        per_client(make_run(ACCURACY, every=5), **arguments)


def test_only_losses_are_better_when_lower():
    assert [higher_is_better(m) for m in ("accuracy", "average_accuracy", "loss", "average_loss")] == [1, 1, 0, 0]

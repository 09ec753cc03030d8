import numpy as np
import pytest

from evaluation.made_runs import make_run
from fedhedge.checks import InvalidInput
from fedhedge.evaluation import rounds_to


def test_the_first_evaluation_at_which_the_client_mean_is_there():
    run = make_run([[0.0, 0.0], [0.5, 0.7], [0.4, 0.6], [0.9, 0.9]], every=10)
    assert rounds_to(run, "accuracy", 0.6) == 10
    assert rounds_to(run, "accuracy", 0.61) == 30
    assert rounds_to(run, "accuracy", 0.0) == 0
    assert rounds_to(run, "accuracy", 0.95) is None


def test_a_loss_has_to_fall_to_the_target():
    run = make_run(loss=[[2.0, 2.0], [1.0, 1.5], [0.5, 0.5]], every=10)
    assert rounds_to(run, "loss", 1.25) == 10
    assert rounds_to(run, "loss", 0.4) is None


def test_clients_without_rows_do_not_count_and_pooled_is_over_rows():
    run = make_run([[0.1, np.nan], [0.8, np.nan]])
    assert rounds_to(run, "accuracy", 0.8) == 10
    history = run.history
    history.loc[(history.client == -1) & (history.metric == "accuracy"), "value"] = [0.9, 0.2]
    assert rounds_to(run, "accuracy", 0.8, pooled=True) == 0


def test_a_target_that_is_no_number_is_refused():
    with pytest.raises(InvalidInput, match="target"):
        rounds_to(make_run([[0.1]]), "accuracy", "80 %")

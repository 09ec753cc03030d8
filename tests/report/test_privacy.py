"""The privacy of runs on the page: against the accounting library, and no number where nothing is accounted."""

import math

import pytest
from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant

from evaluation.made_runs import make_run
from fedhedge.report import write_report
from fedhedge.report.privacy import privacy
from fedhedge.report.study import Study

ACCURACY = [[0.5, 0.6], [0.6, 0.7]]
THROUGH = [(0, 0), (1, 0), (2, 1), (3, 0)]


def study(**changes):
    method = {"name": "DpDroAdmm", "noise": 5.0, "lambda_noise": 20.0, "label_cost": 0.5, "row_bound": 1.0}
    method |= {key: changes.pop(key) for key in list(changes) if key in method}
    settings = {"local_steps": 1, "batch_size": None} | changes
    runs = [make_run(ACCURACY, through=THROUGH, algorithm=method, seed=s, **settings) for s in range(2)]
    return Study.of([*runs, *(make_run(ACCURACY, through=THROUGH, seed=s) for s in range(2))])


def test_epsilon_is_that_of_the_busiest_client():
    (row,) = privacy(study()).rows
    assert row[:3] == ["DpDroAdmm", "5, 20", "3"]
    mu = math.sqrt(3) * math.hypot(1 / 5, 1 / 20)
    assert float(row[3]) == pytest.approx(mu, rel=5e-3)
    accountant = PLDAccountant()
    accountant.compose(SelfComposedDpEvent(GaussianDpEvent(1 / math.hypot(1 / 5, 1 / 20)), 3))
    assert float(row[4]) == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-2)
    assert float(row[5]) >= float(row[4])


def test_lambda_costs_nothing_where_labels_are_trusted():
    for trusted in (math.inf, "inf"):
        (row,) = privacy(study(label_cost=trusted)).rows
        assert row[1] == "5"
        assert float(row[3]) == pytest.approx(math.sqrt(3) / 5, rel=5e-3)


def test_lost_uploads_were_sent_too():
    (row,) = privacy(study(faults={"lost": 0.5})).rows
    assert row[2] == "10"


@pytest.mark.parametrize("changes", [{"noise": 0.0}, {"lambda_noise": 0.0}, {"batch_size": 8}, {"local_steps": 5}])
def test_no_number_where_nothing_is_accounted(changes):
    (row,) = privacy(study(**changes)).rows
    assert row[4] in ("no noise", "not accounted")
    assert row[3] == row[5] == "–"


def test_the_page_has_the_statement_only_for_private_methods(tmp_path):
    page = write_report(study().runs, tmp_path / "a.html").read_text()
    assert "one\nrow of that client is replaced" in page
    assert "Delta must be below" not in write_report(study().runs[2:], tmp_path / "b.html").read_text()

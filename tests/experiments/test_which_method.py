"""The page of all methods: the rare clients' table, from runs made by hand."""

import numpy as np
import pytest
from scipy import stats

from evaluation.made_runs import make_run
from fedhedge.experiments import which_method_text

SEEDS, CLIENTS, RARE = 4, 6, (4, 5)


@pytest.fixture
def made(monkeypatch):
    """Accuracies [seeds, clients] by law and method, constant over the run, and runs of them."""
    # Runs made by hand have no model whose scalars could be counted.
    monkeypatch.setattr(which_method_text, "scalars", lambda params: 100)
    rng = np.random.default_rng(3)
    tables = {
        law: {name: rng.uniform(0.2, 0.5, (SEEDS, CLIENTS)) + 0.4 * (name == "Better") for name in names}
        for law, names in {"even": ("FedAvg", "Better"), "sporadic": ("FedAvg", "Better", "Other")}.items()
    }
    found = {
        ("digits", law): {
            name: [make_run(np.tile(table[s], (4, 1)), seed=s, algorithm={"name": name}) for s in range(SEEDS)]
            for name, table in own.items()
        }
        for law, own in tables.items()
    }
    return tables, found


def test_the_page_has_the_rare_clients_with_intervals(made, tmp_path):
    tables, found = made
    which_method_text.write(tmp_path, found, rare=RARE, fast=True, quiet=True)
    text = (tmp_path / "report.html").read_text()
    rows = text[text.index("<h3>Rare clients") :].split("<tbody>")[1].split("</tbody>")[0].split("<tr>")[1:]
    for law, own in tables.items():
        at = list(tables).index(law)
        base = own["FedAvg"][:, RARE].mean(axis=1)
        for number, name in enumerate(("FedAvg", "Better", "Other")):
            cell = rows[number].split("<td")[1 + at]
            if name not in own:
                assert cell.startswith("></td>")
                continue
            rare = own[name][:, RARE].mean(axis=1)
            assert f"{100 * rare.mean():.1f}" in cell
            if name == "FedAvg":
                assert "to" not in cell
                continue
            low, high = stats.ttest_rel(rare, base).confidence_interval(0.95)
            assert f"({100 * low:+.1f} to {100 * high:+.1f})".replace("-", "−") in cell
            assert ("strong" in cell) == (low > 0)

"""The page of the comparison of methods: its numbers, marks and command."""

import pandas as pd
import pytest

from fedhedge.algorithms import DpSgd
from fedhedge.experiments.dro_methods import Method
from fedhedge.experiments.dro_settings import Setting
from fedhedge.experiments.dro_table import Size, run


def steps(value):
    return lambda privacy, rounds: (DpSgd.calibrated(privacy, rounds, step=value),)


def test_the_page_has_the_numbers_and_marks_of_the_files(tmp_path):
    columns = tuple(Setting(f"{e:g}", "iris", "centred", "accuracy", 5, e) for e in (0.01, 0.9))
    # Steps so small that every score is the same as at any other small one, and one that is not.
    methods = (
        Method("dp-dro", "ours", steps(1e-3)),
        Method("same", "same", steps(1e-4)),
        Method("far", "far", steps(50)),
        Method("dp-dro-paper-l1", "paper", steps(1e-3)),
        Method("dp-erm", "baseline", steps(50)),
    )
    run(Size((0, 1, 2), 2, columns, methods), tmp_path, fast=True, quiet=True)
    page, text = (tmp_path / "report.html").read_text(), (tmp_path / "table.txt").read_text()
    assert "fedhedge reproduce dro-table --fast" in page
    table, apart = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("table", "differences"))
    for _, line in table.iterrows():
        assert f"{line['mean']:.3f} ± {line['error']:.3f}" in text
        assert f"{line['mean']:.3f} ± {line['error']:.3f}" in page
    titles = {"dp-dro-paper-l1": "paper", "dp-erm": "baseline"}
    for ours, other in (("ours", "same"), ("ours", "far"), ("ours", "dp-erm"), ("paper", "dp-erm")):
        shown_lines = text[text.index(f"{ours}, minus") :].splitlines()
        lines = {line.split()[0]: line.split()[1:] for line in reversed(shown_lines) if line}
        name = "dp-dro" if ours == "ours" else "dp-dro-paper-l1"
        part = apart[(apart["method"] == name) & (apart["other"] == other)]
        for shown, (_, line) in zip(lines[titles.get(other, other)], part.iterrows(), strict=True):
            assert float(shown.rstrip("*")) == pytest.approx(line["difference"], abs=6e-4)
            assert shown.endswith("*") == (line["low"] > 0 or line["high"] < 0)
    assert (apart.loc[apart["other"] == "same", "difference"] == 0).all()
    assert text.count("for the whole run, exactly") == 2

"""Finished parts: computed once, refused when of another form or damaged, and text of intervals."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from fedhedge.experiments.dro_cells import Part, finished
from fedhedge.experiments.dro_plots import difference, interval, with_interval
from fedhedge.simulation.checkpoint import CheckpointMismatch


def part(described=None, values=((1.0, 2.0),), made=None):
    def make():
        if made is not None:
            made.append(1)
        return {"values": np.array(values)}

    return Part("one", {"seeds": (0, 1)} if described is None else described, make, {"values": (1, 2)})


def test_a_part_is_computed_once_and_reads_as_it_was_written(tmp_path):
    made = []
    first = finished(tmp_path, [part(made=made)], quiet=True)
    path = tmp_path / "cells" / "one.json"
    before = path.read_bytes()
    again = finished(tmp_path, [part(made=made)], quiet=True)
    assert len(made) == 1
    assert first == again
    assert path.read_bytes() == before


def test_another_form_is_named(tmp_path):
    finished(tmp_path, [part()], quiet=True)
    with pytest.raises(
        CheckpointMismatch, match=r"one\.json is of another table: seeds is \[0, 1\] there and \[0\] here"
    ):
        finished(tmp_path, [part({"seeds": (0,)})], quiet=True)


@pytest.mark.parametrize("values", [[[1.0]], [[1.0, math.nan]], [[1.0, None]], [1.0, 2.0], None])
def test_damaged_parts_are_named(tmp_path, values):
    finished(tmp_path, [part()], quiet=True)
    path = tmp_path / "cells" / "one.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"values": values}))
    with pytest.raises(CheckpointMismatch, match=r"one\.json is damaged"):
        finished(tmp_path, [part()], quiet=True)


def test_intervals_are_student_s():
    values = np.array([[1.0, 2.0, 4.0], [3.0, 3.0, 3.0]])
    mean, half = interval(values)
    low, high = stats.ttest_1samp(values[0], 0.0).confidence_interval(0.95)
    assert (mean[0] - half[0], mean[0] + half[0]) == (pytest.approx(low), pytest.approx(high))
    assert half[1] == 0
    assert with_interval(values[1]) == "3.000 ± 0.000"
    low, high = stats.ttest_rel(values[0], [0.5, 2.5, 3.0]).confidence_interval(0.95)
    said = difference(values[0], [0.5, 2.5, 3.0], 4)
    assert said == f"{np.mean([0.5, -0.5, 1.0]):+.4f} ({low:+.4f} to {high:+.4f})".replace("-", "−")

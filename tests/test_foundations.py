"""Checks, streams and files: the leaf modules that everything else stands on."""

import json
import math
import os
import stat
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedhedge import checks, files, streams
from fedhedge.checks import InvalidInput
from fedhedge.streams import Purpose


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(-10, 10), st.floats(0, 10))
def test_number_accepts_exactly_the_interval(value, low, width):
    inside = low <= value <= low + width
    try:
        assert checks.number("x", value, low=low, high=low + width) == value
        assert inside
    except InvalidInput:
        assert not inside


@pytest.mark.parametrize("value", [True, "1", None, math.nan, math.inf, [1.0], 1j])
def test_number_refuses_what_is_no_finite_number(value):
    with pytest.raises(InvalidInput, match=r"^x: received .*; allowed: a number in \(0, inf\)$"):
        checks.number("x", value, above=0.0)


def test_ends_of_an_open_interval_are_refused_and_said():
    with pytest.raises(InvalidInput, match=r"allowed: a number in \(0, 1\)"):
        checks.number("x", 1.0, above=0.0, below=1.0)


@pytest.mark.parametrize("value", [True, 1.0, "1", None])
def test_integer_refuses_what_is_no_whole_number(value):
    with pytest.raises(InvalidInput, match="allowed: a whole number, 1 or more"):
        checks.integer("x", value, low=1)


def test_numpy_numbers_are_numbers():
    assert checks.integer("x", np.int64(3)) == 3
    assert checks.number("x", np.float32(0.5)) == 0.5


def test_nearest_name_is_proposed():
    with pytest.raises(InvalidInput, match=r"allowed: FedAvg, FedProx \(did you mean FedAvg\?\)"):
        checks.one_of("algorithm", "fedavg", ["FedAvg", "FedProx"])
    assert checks.nearest("zzz", ["FedAvg"]) == ""


def test_long_values_are_cut_and_names_can_be_nested():
    error = InvalidInput("size", list(range(1000)), "less").inside("law").inside("run")
    assert str(error).startswith("run.law.size: received [0, 1,")
    assert len(str(error)) < 200


def test_streams_differ_by_every_part_of_their_name():
    names = [(p, c, r) for p in Purpose for c in (None, 0, 1) for r in (None, 0, 1)]
    firsts = [streams.generator(5, *name).integers(2**63) for name in names]
    assert len(set(firsts)) == len(names)
    assert streams.generator(5, Purpose.INIT).integers(2**63) == streams.generator(5, Purpose.INIT).integers(2**63)
    assert streams.generator(6, Purpose.INIT).integers(2**63) != streams.generator(5, Purpose.INIT).integers(2**63)


def test_arrays_survive_and_objects_are_refused(tmp_path):
    path = tmp_path / "deep" / "arrays.npz"
    files.write_arrays(path, {"a/b": np.arange(3), "text": np.array(["x", "yz"])})
    back = files.read_arrays(path)
    np.testing.assert_array_equal(back["a/b"], [0, 1, 2])
    assert back["text"].tolist() == ["x", "yz"]
    with pytest.raises(TypeError, match="'bad' holds Python objects"):
        files.write_arrays(path, {"bad": np.array([{}], dtype=object)})
    assert sorted(files.read_arrays(path)) == ["a/b", "text"]


def test_failed_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    files.write_json(path, {"old": 1})
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(OSError, match="disk"):
        files.write_json(path, {"new": 2})
    assert json.loads(path.read_text()) == {"old": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["x.json"]


def test_written_files_have_usual_permissions(tmp_path):
    path = tmp_path / "x.txt"
    files.write_text(path, "hello")
    plain = tmp_path / "plain"
    plain.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_dir_of_the_package_lists_what_can_be_used_and_nothing_else():
    script = (
        "import fedhedge as fh\n"
        "public = [name for name in dir(fh) if not name.startswith('__')]\n"
        "assert public == sorted(fh.__all__), public\n"
        "assert all(getattr(fh, name) is not None for name in public)\n"
    )
    # In a process of its own: nothing has been imported there that would become an attribute by itself.
    subprocess.run([sys.executable, "-c", script], check=True)


def test_lists_of_numbers():
    assert checks.numbers_of("x", np.array([0.5, 1]), low=0.0) == (0.5, 1.0)
    assert checks.numbers_of("x", iter([2])) == (2.0,)
    for value in (np.array(0.5), 0.5, "12", None, {1: 2}):
        with pytest.raises(InvalidInput, match=r"^x: received .*; allowed: a list of numbers$"):
            checks.numbers_of("x", value)
    for entry in (10**400, -1.0, "1", math.nan):
        with pytest.raises(InvalidInput, match=r"^x\[1\]: received"):
            checks.numbers_of("x", [1.0, entry], low=0.0)

"""Reading a TOML file, and changing single keys of it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedhedge.checks import InvalidInput
from fedhedge.config.read import override

VALUES = st.one_of(
    st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False), st.lists(st.integers(), max_size=3)
)


@given(st.lists(st.tuples(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), VALUES), max_size=6))
def test_overrides_are_assignments_to_nested_tables(assignments):
    expected: dict = {}
    texts, allowed = [], True
    for path, value in assignments:
        texts.append(f"{'.'.join(path)}={json.dumps(value)}")
        here = expected
        for part in path[:-1]:
            here = here.setdefault(part, {}) if isinstance(here, dict) else here
        if not isinstance(here, dict):
            allowed = False
            break
        here[path[-1]] = value
    found: dict = {}
    if allowed:
        override(found, texts)
        assert found == expected
    else:
        with pytest.raises(InvalidInput, match="is no table"):
            override(found, texts)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("FedAvg", "FedAvg"), ("true", True), ("True", "True"), ("1e-3", 0.001), ("[1, 2", "[1, 2"), ('"3"', "3"),
        ("1\nb = 2", "1\nb = 2"), ("x = y", "x = y"), ("", ""),
    ],
)  # fmt: skip
def test_a_value_that_is_not_toml_is_text(text, value):
    found: dict = {}
    override(found, [f"a.b={text}"])
    assert found == {"a": {"b": value}}
    assert type(found["a"]["b"]) is type(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rounds = 3\nmodel MLP\n", "small.toml, line 2: received 'model MLP'; allowed: TOML"),
        ("rounds = 3\nrounds = 4\n", "small.toml, line 2: received 'rounds = 4'; allowed: TOML (Cannot overwrite"),
        ('rounds = 3\nmodel = "', "small.toml, line 2: received 'model = \"'; allowed: TOML"),
        ("rounds = ", "small.toml, line 1: received 'rounds ='; allowed: TOML"),
        ("", "data: received None"),
    ],
)  # fmt: skip
def test_what_is_not_toml_is_refused_with_file_and_line(file, message, text, expected):
    file.write_text(text)
    assert expected in message(file)


def test_a_file_that_cannot_be_read_is_refused(file, message, tmp_path):
    assert "'absent.toml'; allowed: a TOML file (No such file" in message("absent.toml")
    assert "allowed: a TOML file (Is a directory)" in message(tmp_path)
    file.write_bytes(b"rounds = 3 # \xff")
    assert "small.toml: received 'bytes that are not UTF-8'; allowed: TOML" in message(file)

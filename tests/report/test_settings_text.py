import tomllib

import pytest

from fedhedge.report.settings_text import short, toml


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "none"),
        (True, "true"),
        (0.0367534234, "0.03675"),
        (200, "200"),
        ([0.5, 0.5, 0.5, 0.25], "0.5 (3 times), 0.25"),
        ([], "none"),
        ("f" * 64, "ffffffffffff…"),
        ("a name", "a name"),
    ],
)
def test_values_for_a_table(value, text):
    assert short(value) == text


def test_toml_reads_back():
    settings = {
        "rounds": 200,
        "data": {"source": 'a "quoted"\nname', "partition": {"reserved": {"27": [8], "a b": [8, 9]}}, "digest": "ab"},
        "algorithm": {"step": 0.006557377049180328, "nested": [{"q": [1, 2]}]},
        "resume": False,
    }
    assert tomllib.loads(toml(settings)) == settings


def test_none_is_a_comment():
    text = toml({"step": 0.1, "ball": None})
    assert tomllib.loads(text) == {"step": 0.1}
    assert "# ball: none" in text

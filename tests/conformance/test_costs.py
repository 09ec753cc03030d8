"""The costs in the documentation are those of the messages."""

from pathlib import Path

import pytest

from conformance.costs import HEAD, lines

PAGE = Path(__file__).parents[2] / "docs" / "costs.md"


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_page_shows_what_is_measured():
    shown = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    assert shown == [*HEAD.splitlines(), *lines()]

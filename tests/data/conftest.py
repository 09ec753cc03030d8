"""Fixtures for the tests of the data room."""

from pathlib import Path

import pytest

from fedhedge.data import resolve


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A user cache of each test's own."""
    folder = tmp_path / "user-cache"
    monkeypatch.setattr(resolve, "user_cache", lambda: folder)
    return folder

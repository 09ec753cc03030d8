"""Fixtures for all tests."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# On a machine that judges changes, the examples of property tests are the same each time.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder of the real data files; skips the test when there is none."""
    folder = os.environ.get("FEDHEDGE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip(f"FEDHEDGE_DATA names no folder with the real data files (it is {folder!r})")
    return Path(folder)

"""Fixtures for all tests."""

import itertools
import os
from pathlib import Path

import pytest
from hypothesis import settings

# On a machine that judges changes, the examples of property tests are the same each time.
# How long an example takes depends on what was compiled before, and on what else the machine does.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", derandomize=True, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "here")


# A process may map so many pieces of memory (65,530 by default on Linux), and every compiled programme takes some.
MAPS, ENOUGH = Path("/proc/self/maps"), 45_000
# Counting them takes a while, so that it is done after every so many tests.
EVERY = 25
tests = itertools.count(1)


@pytest.fixture(autouse=True)
def room_for_programmes():
    """Drop compiled programmes before the process runs into the limit."""
    yield
    if next(tests) % EVERY == 0 and MAPS.exists() and MAPS.read_bytes().count(b"\n") > ENOUGH:
        import jax

        jax.clear_caches()


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder of the real data files; skips the test when there is none."""
    folder = os.environ.get("FEDHEDGE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip(f"FEDHEDGE_DATA names no folder with the real data files (it is {folder!r})")
    return Path(folder)

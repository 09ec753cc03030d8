"""A small configuration file, a finished run of it, and what the command says of errors."""

from pathlib import Path

import jax
import pytest

from fedhedge import report
from fedhedge.cli import main

TEXT = """
rounds = 20
evaluate_every = 10
[data]
source = "digits"
[partition]
name = "ByLabel"
clients = 12
[availability]
name = "FixedSize"
size = 3
[model]
name = "Linear"
[algorithm]
name = "FedAvg"
"""


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """A folder for what JAX compiles, shared by all tests here."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def cache(compiled):
    """A cache folder of our own."""
    before = jax.config.jax_compilation_cache_dir, jax.config.jax_persistent_cache_min_compile_time_secs
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(compiled))
        yield compiled
    jax.config.update("jax_compilation_cache_dir", before[0])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", before[1])


@pytest.fixture
def file(tmp_path, monkeypatch, cache):
    """A configuration file in the working directory; reports, which take longer than these runs, are left out."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(report, "write_plots", lambda *_, **__: None)
    monkeypatch.setattr(report, "write_report", lambda *_, **__: None)
    Path("small.toml").write_text(TEXT)
    return "small.toml"


@pytest.fixture
def finished(file):
    """The folder of a finished run of the file."""
    assert main(["run", file, "--quiet"]) == 0
    return Path("runs/small-0")


@pytest.fixture
def complaint(capsys):
    """What gives the one line on standard error."""

    def read():
        said = capsys.readouterr().err
        assert said.startswith("fedhedge: error: ")
        assert said.count("\n") == 1
        return said

    return read


@pytest.fixture(scope="module")
def no_cache():
    """What is compiled is not kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fedhedge.cli.compilation.keep_compiled", lambda: None)
        yield

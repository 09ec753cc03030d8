"""A small configuration file, and what is said of a changed one that is refused."""

import pytest

from fedhedge.checks import InvalidInput
from fedhedge.config import load_config

TEXT = """
rounds = 20
seed = 7
[data]
source = "digits"
[partition]
name = "ByLabel"
clients = 12
[availability]
name = "FixedSize"
size = 3
[model]
name = "MLP"
hidden = [20]
[algorithm]
name = "FedeRage"
alpha = 0.1
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(TEXT)
    return path


@pytest.fixture
def message():
    """What says why a file is refused, after keys were set."""

    def refused(path, *overrides, load_data=False):
        with pytest.raises(InvalidInput) as caught:
            load_config(path, overrides).simulation() if load_data else load_config(path, overrides)
        return str(caught.value)

    return refused

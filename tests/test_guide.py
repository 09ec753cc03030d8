"""The examples of the guide and the README run as they stand."""

import re
from pathlib import Path

import pytest

from fedhedge.config import load_config

ROOT = Path(__file__).parent.parent


def blocks(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), flags=re.DOTALL)


@pytest.mark.filterwarnings("ignore:FedeRage")
@pytest.mark.parametrize("name", ["docs/guide.md", "README.md"])
def test_examples_run(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    source = "\n".join(blocks(name))
    # The README's example is the demonstration at full length; its first rounds show that it runs.
    source = source.replace("rounds=3000", "rounds=60").replace("range(5)", "range(2)")
    names: dict[str, object] = {"__name__": "guide"}
    exec(compile(source, name, "exec"), names)
    printed = capsys.readouterr().out
    assert printed.count("\n") > 5
    if "fit" in names:
        assert float(names["fit"].params["level"]) == pytest.approx(3.0, abs=0.05)


def test_configurations_of_the_guide_are_complete(tmp_path):
    found = re.findall(r"```toml\n(.*?)```", (ROOT / "docs/guide.md").read_text(), flags=re.DOTALL)
    files = [text for text in found if "[data]" in text]
    assert any("[algorithm.base]" in text and "[faults]" in text for text in files)
    for number, text in enumerate(files):
        path = tmp_path / f"{number}.toml"
        path.write_text(text)
        load_config(path)

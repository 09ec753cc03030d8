"""Sources by name."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fedhedge import InvalidInput
from fedhedge.data import available, check, fetch, idx, load, registry
from fedhedge.data.registry import SOURCES

EMBEDDED = ["digits", "iris", "wine", "penguins", "dermatology", "seeds", "clusters"]


@pytest.mark.parametrize("name", EMBEDDED)
def test_a_source_is_what_the_list_says(name: str) -> None:
    dataset, line = load(name), SOURCES[name]
    assert dataset.name == name
    assert len(dataset) == line.rows
    assert " x ".join(map(str, dataset.features.shape[1:])) == line.features
    assert dataset.number_of_classes == line.classes
    assert np.isfinite(dataset.features).all()
    assert len(set(dataset.labels.tolist())) == line.classes


def test_unknown_names_and_options_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"source: received 'fashion_mnist'; .*did you mean fashion-mnist"):
        load("fashion_mnist")
    with pytest.raises(InvalidInput, match=r"option: received 'row'; allowed: rows, radius, .*did you mean rows"):
        load("clusters", row=3)
    with pytest.raises(InvalidInput, match=r"option: received 'rows'; allowed: none, iris has no options"):
        load("iris", rows=3)


def test_the_list_says_what_is_here(tmp_path: Path) -> None:
    table = available(root=tmp_path).set_index("name")
    assert table.index.tolist() == list(SOURCES)
    assert table.index[table["download"]].tolist() == ["mnist", "fashion-mnist", "cifar10"]
    assert not table.loc[["mnist", "cifar10"], "present"].any()
    assert table.loc[EMBEDDED, "present"].all()
    (tmp_path / "mnist").mkdir()
    for file in idx.MNIST.files.files:
        (tmp_path / "mnist" / file.name).touch()
    assert available(root=tmp_path).set_index("name").loc["mnist", "present"]


def test_check_tells_the_state_of_every_file(tmp_path: Path) -> None:
    (tmp_path / "mnist").mkdir()
    file = idx.MNIST.files.files[1]
    (tmp_path / "mnist" / file.name).write_bytes(bytes(file.size))
    table = check("mnist", root=tmp_path)
    assert table["file"].tolist() == [entry.name for entry in idx.MNIST.files.files]
    assert table["state"].str.contains("MD5 of the content").tolist() == [False, True, False, False]
    assert (table["state"].drop(1) == "missing").all()
    assert check("iris").empty


def test_fetch_and_download_reach_the_downloader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def fetch_files(files: object, root: Path) -> list[Path]:
        asked.append((files, root))
        return [root / "new"]

    monkeypatch.setattr(registry, "fetch_files", fetch_files)
    assert fetch("mnist", tmp_path) == [str(tmp_path / "new")]
    assert fetch("iris", tmp_path) == []
    with pytest.raises(FileNotFoundError):
        load("mnist", tmp_path, download=True)
    with pytest.raises(FileNotFoundError):
        load("mnist", tmp_path)
    assert asked == [(idx.MNIST.files, tmp_path)] * 2


def test_importing_the_room_is_light() -> None:
    heavy = "import sys, fedhedge.data; print([m for m in ('sklearn', 'jax', 'PIL', 'matplotlib') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True).stdout == "[]\n"


@pytest.mark.data
@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_real_files_pass_the_check(real_data: Path, name: str) -> None:
    assert (check(name, root=real_data)["state"] == "ok").all()

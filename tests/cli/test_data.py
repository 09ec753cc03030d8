"""`fedhedge data`: what there is, and what is damaged."""

from pathlib import Path

import pytest

from fedhedge.cli import main


def test_data_list_and_check(file, tmp_path, capsys, complaint, monkeypatch):
    monkeypatch.setenv("FEDHEDGE_DATA", str(tmp_path))
    assert main(["data", "list"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert lines["digits"].endswith("True")
    assert lines["mnist"].endswith("False")
    assert main(["data", "check", "iris"]) == 0
    assert main(["data", "check", "iris", "mnist"]) == 1
    assert capsys.readouterr().out.count("missing") == 4
    assert main(["data", "fetch", "iris"]) == 0
    assert "iris: nothing is missing" in capsys.readouterr().out
    assert main(["data", "check", "mnits"]) == 2
    assert "did you mean mnist?" in complaint()


@pytest.mark.data
def test_data_check_finds_a_damaged_file(file, real_data, capsys):
    assert main(["data", "check", "mnist", "--root", str(real_data)]) == 0
    assert capsys.readouterr().out.count(" ok") == 4
    Path("mnist").mkdir()
    for path in (real_data / "mnist").iterdir():
        Path("mnist", path.name).write_bytes(path.read_bytes())
    Path("mnist/t10k-labels-idx1-ubyte.gz").write_bytes(b"damaged")
    assert main(["data", "check", "mnist", "--root", "."]) == 1
    assert capsys.readouterr().out.count(" ok") == 3

"""`fedhedge demo`."""

from pathlib import Path

from fedhedge.cli import main


def test_demo_is_given_its_folder(file, monkeypatch, capsys):
    def record(out, *, quiet):
        seen.append((out, quiet))
        if len(seen) > 2:
            raise KeyboardInterrupt

    seen: list = []
    monkeypatch.setattr("fedhedge.experiments.demo.main", record)
    assert main(["demo"]) == 0
    assert main(["demo", "--out", "there", "--quiet"]) == 0
    assert seen == [(Path("runs/demo"), False), (Path("there"), True)]
    assert main(["demo"]) == 130
    assert capsys.readouterr().err == "fedhedge: interrupted; the same command goes on with what is in runs/demo\n"

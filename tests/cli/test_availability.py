"""`fedhedge availability describe`."""

from pathlib import Path

import pandas as pd

from fedhedge.cli import main


def test_availability_describe_prints_the_law(file, capsys):
    law = "availability={name='Independent', probabilities=[0.5, 0.5, 0.0]}"
    arguments = ["--set", "partition.clients=3", "--set", law, "--set", "partition.classes_per_client=4"]
    assert main(["availability", "describe", file, *arguments]) == 0
    header, *rows, last = capsys.readouterr().out.splitlines()
    table = pd.DataFrame([row.split() for row in rows], columns=header.split())
    # Two fair coins: each client alone with 1/4, both with 1/4, nobody with 1/4.
    assert table["inclusion_probability"].astype(float).tolist() == [0.5, 0.5, 0.0]
    assert table["weight"].astype(float).tolist() == [0.5, 0.5, 0.0]
    assert last == "clients a round: 1 on average; rounds without any: 0.25"
    assert main(["availability", "describe", file, *arguments, "--set", "faults.lost=0.2"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "on top of that, each upload is lost with probability 0.2 ([faults])"
    )
    assert main(["availability", "describe", file, *arguments, "--plot", "weights.svg"]) == 0
    assert capsys.readouterr().out.endswith("plot: weights.svg\n")
    assert "Weight of each client, 50.0 % to 0.0 %; uniform 33.3 %" in Path("weights.svg").read_text()
    assert main(["availability", "describe", file, *arguments, "--plot", "weights.pdf"]) == 2
    assert "--plot: received 'weights.pdf'; allowed: a file name that ends in .png or .svg" in capsys.readouterr().err

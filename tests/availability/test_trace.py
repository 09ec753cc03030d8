import numpy as np
import pandas as pd
import pytest
from enumeration import assert_results

from fedhedge.availability import Dropout, Everyone, Independent, Subsets, Trace, presets
from fedhedge.checks import InvalidInput

PRESENT = [[1, 0, 1], [0, 0, 0], [0, 1, 0], [1, 0, 1]]


def write(path, frame):
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, index=False)
    return path


def test_replays_and_repeats():
    rows = Trace(PRESENT).schedule(0, 2, 11)
    assert rows.astype(int).tolist() == [PRESENT[t % 4] for t in range(2, 11)]
    rng = np.random.default_rng(0)
    assert Trace(PRESENT).sample(rng, 6).tolist() == [False, True, False]


def test_results_are_averages_over_the_rounds():
    assert_results(Trace(PRESENT), {(0, 2): 0.5, (): 0.25, (1,): 0.25})


def test_wrapped_results():
    table = Subsets({(0, 2): 0.5, (): 0.25, (1,): 0.25})
    np.testing.assert_allclose(Dropout(Trace(PRESENT), 0.3).weights(), Dropout(table, 0.3).weights(), rtol=1e-13)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_file_with_gaps(tmp_path, suffix):
    frame = pd.DataFrame({"client": [0, 2, 1, 0, 2], "round": [0, 0, 2, 3, 3], "site": list("acbac")})
    assert Trace(write(tmp_path / f"trace{suffix}", frame)) == Trace(PRESENT)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("law", [presets.sporadic(), Independent([0.05, 0.1, 0.0])], ids=["sporadic", "often empty"])
def test_recorded_rounds_come_back(tmp_path, suffix, law):
    path = tmp_path / f"trace{suffix}"
    law.record(300, path, seed=11)
    replayed = Trace(path, clients=law.clients)
    expected = law.schedule(11, 0, 300)
    assert (replayed.schedule(99, 0, 300) == expected).all()
    assert (replayed.schedule(99, 300, 310) == expected[:10]).all()
    assert list(tmp_path.iterdir()) == [path]


def test_record_keeps_the_old_file_when_it_fails(tmp_path):
    path = tmp_path / "trace.csv"
    Everyone(2).record(3, path)
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match="clients"):
        Everyone().record(3, path)
    assert path.read_bytes() == before
    with pytest.raises(InvalidInput, match=r"path: .*\.csv or \.parquet"):
        Everyone(2).record(3, tmp_path / "trace.xlsx")
    with pytest.raises(InvalidInput, match="rounds: received 0"):
        Everyone(2).record(0, path)


def test_highest_client_or_the_number_given(tmp_path):
    path = write(tmp_path / "trace.csv", pd.DataFrame({"round": [0], "client": [1]}))
    assert Trace(path).clients == 2
    assert Trace(path, clients=5).inclusion_probabilities().tolist() == [0, 1, 0, 0, 0]
    with pytest.raises(InvalidInput, match=r"trace.csv: client: received 1; allowed: a whole number from 0 to 0"):
        Trace(path, clients=1)


def test_equal_traces_are_equal_wherever_they_come_from(tmp_path):
    path = write(tmp_path / "trace.csv", pd.DataFrame({"round": [0, 1], "client": [0, 1]}))
    assert Trace(path).settings() == Trace(np.eye(2)).settings()
    assert Trace(np.eye(2)) != Trace(np.ones((2, 2)))
    assert Trace(np.eye(4)) != Trace(np.eye(4).reshape(2, 8))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"round": [0, 1], "site": [0, 1]}, r"trace.csv: columns: .*missing: client"),
        ({"round": [0, 1.5], "client": [0, 1]}, r"trace.csv: round: received 1.5; .*\(row 1 of the data\)"),
        ({"round": [0, None], "client": [0, 1]}, "trace.csv: round: received nan"),
        ({"round": [0, 1], "client": ["a", 1]}, "trace.csv: client: received 'a'; allowed: whole numbers, 0 or more"),
        ({"round": [0, 1], "client": [0, -1]}, "trace.csv: client: received -1"),
        ({"round": [0, 1], "client": [None, None]}, "trace.csv: client: .*somebody gets through"),
        ({"round": [0, 1.7e9], "client": [0, 1]}, "trace.csv: round: received 1700000000; .*too large"),
    ],
)
def test_bad_files_are_named_with_the_column(tmp_path, columns, message):
    path = write(tmp_path / "trace.csv", pd.DataFrame(columns))
    with pytest.raises(InvalidInput, match=message):
        Trace(path)


def test_missing_empty_and_broken_files(tmp_path):
    with pytest.raises(InvalidInput, match=r"source: .*absent.csv.*an existing .csv or .parquet file"):
        Trace(tmp_path / "absent.csv")
    for name in ("empty.csv", "broken.parquet"):
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(InvalidInput, match=r"a readable .csv or .parquet file"):
            Trace(tmp_path / name)


@pytest.mark.parametrize(
    ("source", "clients", "message"),
    [
        ([[0, 2]], None, "source: .*0 and 1"),
        ([0, 1], None, "source: "),
        ([[0, 0]], None, "source: .*somebody gets through"),
        ([[0, 1]], 3, "clients: received 3; allowed: 2"),
    ],
)
def test_bad_arrays(source, clients, message):
    with pytest.raises(InvalidInput, match=message):
        Trace(source, clients)

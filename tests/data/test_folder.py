"""Folders of sites, and errors that name the file and the column."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedhedge import InvalidInput
from fedhedge.data import Clients
from fedhedge.data.folder import read_site, read_table


def site(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {"flow": rng.normal(size=n), "speed": rng.integers(0, 9, n), "fault": rng.choice(["no", "yes"], n)}
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "sites"
    path.mkdir()
    site(30, 0).to_csv(path / "mill.csv", index=False)
    site(20, 1)[["fault", "speed", "flow"]].to_parquet(path / "dam.parquet")
    (path / "notes.txt").write_text("not a site")
    return path


def test_each_file_is_a_client(folder: Path) -> None:
    clients = Clients.from_folder(folder, label="fault", scaling="none")
    assert clients.names == ("dam", "mill")
    assert clients.feature_names == ("speed", "flow")
    assert clients.classes == ("no", "yes")
    assert clients.description["source"] == "folder"
    mill = pd.DataFrame(np.concatenate([clients.rows(split, 1)[0] for split in ("train", "validation", "test")]))
    expected = site(30, 0)[["speed", "flow"]].to_numpy(float)
    np.testing.assert_allclose(sorted(mill.to_numpy().tolist()), sorted(expected.tolist()))
    assert clients.label_counts("train").loc["dam"].sum() == 14


def test_columns_are_standardised_over_all_training_rows_unless_told_otherwise(folder: Path) -> None:
    train, _ = Clients.from_folder(folder, label="fault").rows("train")
    np.testing.assert_allclose(train.mean(axis=0), 0.0, atol=1e-6)
    np.testing.assert_allclose(train.std(axis=0), 1.0, atol=1e-6)


def test_the_folder_may_be_all_for_training(folder: Path) -> None:
    clients = Clients.from_folder(str(folder), "fault", validation=0, test=0)
    assert clients.counts("train").tolist() == [20, 30]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: t.rename(columns={"fault": "faults"}),
            r"mill.csv, label column: received 'fault'; .*did you mean faults",
        ),
        (lambda t: t.assign(flow="high"), r"mill.csv, column 'flow': received 'high'; allowed: numbers"),
        (lambda t: t.assign(flow=["1.5", "oops"] * 15), r"mill.csv, column 'flow': received 'oops'; allowed: numbers"),
        (
            lambda t: t.assign(flow=[1.0, np.nan, 2.0] * 10),
            r"mill.csv, column 'flow': received 'a gap'; .*row 2, 10 in all",
        ),
        (lambda t: t.assign(flow=np.inf), r"mill.csv, column 'flow': received inf; allowed: finite"),
        (
            lambda t: t.assign(fault=[None, "no", "yes"] * 10),
            r"mill.csv, column 'fault': received 'a gap'; .*row 1, 10",
        ),
        (
            lambda t: t.drop(columns="speed"),
            r"columns of mill.csv: received 'lacks speed'; allowed: the columns of dam",
        ),
        (lambda t: t.assign(heat=1.0), r"columns of mill.csv: received 'adds heat'"),
        (lambda t: t.assign(fault=1), r"labels in column 'fault'.*dam.parquet and mill.csv differ"),
        (lambda t: t.iloc[:0], r"mill.csv: received 'no rows'"),
        (lambda t: t[["fault"]], r"mill.csv: received \"only the label column 'fault'\""),
    ],
)
def test_errors_name_the_site_and_the_column(folder: Path, change, message: str) -> None:  # type: ignore[no-untyped-def]
    change(site(30, 0)).to_csv(folder / "mill.csv", index=False)
    with pytest.raises(InvalidInput, match=message):
        Clients.from_folder(folder, label="fault")


def test_an_empty_file_is_named(folder: Path) -> None:
    (folder / "mill.csv").write_bytes(b"")
    with pytest.raises(InvalidInput, match=r"mill.csv: received 'an empty file'"):
        Clients.from_folder(folder, label="fault")


def test_a_file_that_is_no_table_is_named(folder: Path) -> None:
    (folder / "dam.parquet").write_bytes(b"not a table")
    with pytest.raises(InvalidInput, match=r"dam.parquet: received .*allowed: a readable table"):
        Clients.from_folder(folder, label="fault")


def test_a_folder_needs_sites_of_different_names(folder: Path) -> None:
    with pytest.raises(InvalidInput, match=r"folder: received .*one .csv or .parquet file for each site"):
        Clients.from_folder(folder / "nowhere", label="fault")
    site(30, 0).to_csv(folder / "dam.csv", index=False)
    with pytest.raises(InvalidInput, match="two files are named dam"):
        Clients.from_folder(folder, label="fault")


def test_rows_that_are_longer_than_the_header_are_named(folder: Path) -> None:
    """Read by pandas alone, the first of four fields becomes an index and all columns move by one."""
    (folder / "mill.csv").write_text("flow,speed,fault\n1,2,no\n\n9,3,4,yes\n")
    with pytest.raises(
        InvalidInput, match=r"mill.csv, row 2: received '4 fields'; allowed: 3 fields, as in the header"
    ):
        Clients.from_folder(folder, label="fault")
    (folder / "mill.csv").write_text("flow,speed,fault\n9,1,2,no\n9,3,4,yes\n")
    with pytest.raises(InvalidInput, match=r"mill.csv, row 1: received '4 fields'"):
        Clients.from_folder(folder, label="fault")
    (folder / "mill.csv").write_text("flow,speed,fault\n1,2\n")
    with pytest.raises(InvalidInput, match=r"mill.csv, row 1: received '2 fields'"):
        Clients.from_folder(folder, label="fault")


def test_repeated_columns_are_named(folder: Path) -> None:
    (folder / "mill.csv").write_text("fault,speed,fault\nno,2,no\n")
    with pytest.raises(
        InvalidInput, match=r"mill.csv, column 'fault': received '2 columns of this name'; allowed: one"
    ):
        Clients.from_folder(folder, label="fault")


def test_quoted_commas_line_ends_and_a_byte_order_mark_are_of_the_format(folder: Path) -> None:
    text = '\ufeffflow,speed,fault\r\n1,2,"no, none"\r\n\r\n3,4,"yes\nindeed"\r\n'
    (folder / "mill.csv").write_bytes(text.encode())
    table = read_table(folder / "mill.csv")
    expected = pd.DataFrame({"flow": [1, 3], "speed": [2, 4], "fault": ["no, none", "yes\nindeed"]})
    pd.testing.assert_frame_equal(table, expected)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("flow;speed;fault\n1.5;2;no\n", "header"),
        ("flow;speed;fault\n1,5;2;no\n", "header"),
        ("flow\tspeed\tfault\n1.5\t2\tno\n", "header"),
        ("flow,speed,fault\n1.5,2,no\n1,5,2,no\n", "row 2"),
        ('flow,speed,fault\n"-1,5",2,no\n2,2,no\n', "column 'flow'"),
    ],
)
def test_other_separators_and_decimal_commas_are_recognised(tmp_path: Path, text: str, where: str) -> None:
    file = tmp_path / "mill.csv"
    file.write_text(text)
    with pytest.raises(InvalidInput) as refused:
        read_site(file, "fault")
    assert refused.value.name == f"mill.csv, {where}"
    assert "decimals have a point" in str(refused.value)


def test_a_name_may_hold_a_semicolon(tmp_path: Path) -> None:
    file = tmp_path / "mill.csv"
    file.write_text('flow,"speed; rpm",fault\n1.5,2,no\n')
    assert list(read_site(file, "fault")[0]) == ["flow", "speed; rpm"]

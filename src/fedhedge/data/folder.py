"""Tables of sites: one .csv or .parquet file each."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd

from fedhedge.checks import InvalidInput, nearest

# What files of many European spreadsheets need.
POINT = "a comma separates fields, and decimals have a point"


def read_sites(path: str | PathLike[str], label: str) -> tuple[pd.DataFrame, pd.Series, np.ndarray]:
    """Features, labels and site name of every row of every site in a folder, sites in order of name.

    Raises InvalidInput when the folder holds no site, a site is not readable (see `read_site`), two sites have
    different columns, or the labels of one are text and of another numbers.
    """
    folder = Path(path)
    files = sorted(file for file in folder.glob("*") if file.suffix in _READERS)
    if not files:
        raise InvalidInput("folder", str(folder), "an existing folder with one .csv or .parquet file for each site")
    names = [file.stem for file in files]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InvalidInput("folder", str(folder), "one file for each site", f"two files are named {twice[0]}")
    sites = [read_site(file, label) for file in files]
    first, first_labels = sites[0]
    for file, (table, values) in zip(files, sites, strict=True):
        _check_columns(file, table, files[0], first)
        if pd.api.types.is_numeric_dtype(values) != pd.api.types.is_numeric_dtype(first_labels):
            hint = f"{files[0].name} and {file.name} differ"
            raise InvalidInput(f"labels in column {label!r}", "text and numbers", "one kind in all sites", hint)
    features = pd.concat([table[first.columns] for table, _ in sites], ignore_index=True)
    labels = pd.concat([values for _, values in sites], ignore_index=True)
    return features, labels, np.repeat(names, [len(table) for table, _ in sites])


def read_site(path: str | PathLike[str], label: str) -> tuple[pd.DataFrame, pd.Series]:
    """Features (float64 columns) and labels of one site's file.

    Raises InvalidInput that names the file and the column when the label column is missing or has gaps, or when a
    feature is not a finite number in every row.
    """
    file = Path(path)
    table = read_table(file)
    if label not in table.columns:
        columns = ", ".join(map(str, table.columns))
        hint = nearest(label, table.columns)
        raise InvalidInput(f"{file.name}, label column", label, f"one of its columns: {columns}", hint)
    if len(table.columns) == 1:
        raise InvalidInput(file.name, f"only the label column {label!r}", "at least one feature column")
    labels = table[label]
    if labels.isna().any():
        raise InvalidInput(f"{file.name}, column {label!r}", "a gap", "a label in every row", _first_row(labels.isna()))
    features = table.drop(columns=label)
    return pd.DataFrame({name: _numbers(file, features[name]) for name in features}), labels


def read_table(path: str | PathLike[str]) -> pd.DataFrame:
    """The table of a .csv or .parquet file, as it stands in the file.

    Raises InvalidInput that names the file, and the column or the row, when there is no such table, a column's name
    comes twice, a row of a .csv has more or fewer fields than the header, or there are no rows.
    """
    file = Path(path)
    if file.suffix not in _READERS:
        raise InvalidInput("table file", str(file), "a file that ends in .csv or .parquet")
    try:
        table = _READERS[file.suffix](file)
    except InvalidInput:
        raise
    except (ValueError, OSError, csv.Error) as error:
        raise InvalidInput(file.name, str(error), "a readable table") from None
    _check_names(file, list(table.columns))
    if table.empty:
        raise InvalidInput(file.name, "no rows", "a header line and at least one row")
    return table


def _read_csv(file: Path) -> pd.DataFrame:
    """The table, after its fields were counted: pandas makes an index of surplus ones, and renames repeated columns."""
    with file.open(encoding="utf-8-sig", newline="") as stream:
        # Of blank lines pandas makes no row.
        records = (record for record in csv.reader(stream) if len(record) > 1 or "".join(record).strip())
        header = next(records, None)
        if header is None:
            raise InvalidInput(file.name, "an empty file", "a header line and at least one row")
        _check_names(file, header)
        other = any(mark in "".join(header) for mark in ";\t")
        if other and len(header) == 1:
            raise InvalidInput(f"{file.name}, header", header[0], "names separated by commas", POINT)
        for number, record in enumerate(records, start=1):
            if len(record) != len(header):
                allowed = f"{len(header)} fields, as in the header"
                hint = POINT if other or len(record) > len(header) else ""
                raise InvalidInput(f"{file.name}, row {number}", f"{len(record)} fields", allowed, hint)
    return pd.read_csv(file, encoding="utf-8-sig", index_col=False)


_READERS: dict[str, Callable[[Path], pd.DataFrame]] = {".csv": _read_csv, ".parquet": pd.read_parquet}


def _check_names(file: Path, names: Sequence[object]) -> None:
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InvalidInput(
            f"{file.name}, column {str(twice[0])!r}", f"{names.count(twice[0])} columns of this name", "one"
        )


def _numbers(file: Path, column: pd.Series) -> pd.Series:
    where = f"{file.name}, column {str(column.name)!r}"
    if column.isna().any():
        raise InvalidInput(where, "a gap", "a number in every row", _first_row(column.isna()))
    if not pd.api.types.is_numeric_dtype(column):
        text = pd.to_numeric(column, errors="coerce").isna()
        example = column[text].iloc[0] if text.any() else column.iloc[0]
        comma = re.fullmatch(r"[+-]?\d[\d.]*,\d+", str(example).strip())
        hint = POINT if comma else "encode text as numbers, or leave the column out"
        raise InvalidInput(where, str(example), "numbers", hint)
    values = column.astype(np.float64)
    infinite = values.abs() == np.inf
    if infinite.any():
        raise InvalidInput(where, float(values[infinite].iloc[0]), "finite numbers", _first_row(infinite))
    return values


def _first_row(bad: pd.Series) -> str:
    return f"row {int(bad.to_numpy().argmax()) + 1}, {int(bad.sum())} in all"


def _check_columns(file: Path, table: pd.DataFrame, first_file: Path, first: pd.DataFrame) -> None:
    missing = [str(name) for name in first if name not in table]
    extra = [str(name) for name in table if name not in first]
    if missing or extra:
        parts = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"adds {', '.join(extra)}"] * bool(extra)
        allowed = f"the columns of {first_file.name}"
        raise InvalidInput(f"columns of {file.name}", "; ".join(parts), allowed)

"""The list of sources, and how to load, fetch and check them by name."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from typing import Any

import pandas as pd

from fedhedge import checks
from fedhedge.checks import InvalidInput, nearest
from fedhedge.data import cifar10, idx, resolve
from fedhedge.data.download import fetch_files
from fedhedge.data.resolve import CorruptData, FileSet
from fedhedge.data.source import Dataset

Root = str | PathLike[str] | None


@dataclass(frozen=True)
class Source:
    """One line of the list; `reader` is "module:function" in this package, imported on first use."""

    reader: str
    rows: int
    features: str
    classes: int
    licence: str
    files: FileSet | None = None

    def function(self) -> Callable[..., Dataset]:
        module, function = self.reader.split(":")
        found: Callable[..., Dataset] = getattr(importlib.import_module(f"fedhedge.data.{module}"), function)
        return found


SOURCES = {
    "digits": Source("digits:load_digits", 1797, "8 x 8 x 1", 10, "CC BY 4.0 (UCI)"),
    "mnist": Source("idx:load_mnist", 70_000, "28 x 28 x 1", 10, "CC BY-SA 3.0", idx.MNIST.files),
    "fashion-mnist": Source(
        "idx:load_fashion_mnist", 70_000, "28 x 28 x 1", 10, "MIT, Zalando SE 2017", idx.FASHION_MNIST.files
    ),
    "cifar10": Source(
        "cifar10:load_cifar10", 60_000, "32 x 32 x 3", 10, "none stated; cite Krizhevsky 2009", cifar10.FILES
    ),
    "iris": Source("tables:load_iris", 150, "4", 3, "CC BY 4.0 (UCI)"),
    "wine": Source("tables:load_wine", 178, "13", 3, "CC BY 4.0 (UCI)"),
    "penguins": Source("tables:load_penguins", 342, "4", 3, "CC0 1.0"),
    "dermatology": Source("tables:load_dermatology", 358, "34", 6, "CC BY 4.0 (UCI)"),
    "seeds": Source("tables:load_seeds", 210, "7", 3, "CC BY 4.0 (UCI)"),
    "pump": Source("pump:load_pump", 2000, "13", 4, "simulated by this package"),
    "clusters": Source("clusters:load_clusters", 1000, "2", 5, "simulated by this package"),
}


def load(name: str, root: Root = None, download: bool = False, **options: Any) -> Dataset:
    """A source by name.

    Files are looked for below `root`, else below the folder that the variable FEDHEDGE_DATA names, else in the
    user's cache; with `download` those missing are fetched first. `options` are the arguments of a simulated source
    (`load("clusters", rows=50)`). Raises InvalidInput for an unknown name or option, MissingData, CorruptData and
    DownloadFailed.
    """
    source = _source(name)
    checks.boolean("download", download)
    read = source.function()
    allowed = [option for option in inspect.signature(read).parameters if option != "root"]
    for option in options:
        if option not in allowed:
            known = ", ".join(allowed) or f"none, {name} has no options"
            raise InvalidInput("option", option, known, nearest(option, allowed))
    if source.files is None:
        return read(**options)
    if download:
        fetch_files(source.files, resolve.data_root(root))
    return read(root=root, **options)


def available(root: Root = None) -> pd.DataFrame:
    """All sources: rows, shape of a row, classes, licence, whether files are to be downloaded, whether they are here.

    `rows` of a simulated source is its default.
    """
    folder = resolve.data_root(root)
    return pd.DataFrame(
        [
            {
                "name": name,
                "rows": source.rows,
                "features": source.features,
                "classes": source.classes,
                "licence": source.licence,
                "download": source.files is not None,
                "present": source.files is None
                or all(resolve.locate(source.files, file, folder) for file in source.files.files),
            }
            for name, source in SOURCES.items()
        ]
    )


def fetch(name: str, root: Root = None) -> list[str]:
    """Download the files of a source that are missing; returns the paths written, none when nothing was missing."""
    file_set = _source(name).files
    return [] if file_set is None else [str(path) for path in fetch_files(file_set, resolve.data_root(root))]


def check(name: str, root: Root = None) -> pd.DataFrame:
    """State of each file of a source: file, path ("" when missing) and state ("ok", "missing", or what is wrong).

    The content is read and its checksum computed anew. A source without files gives an empty table.
    """
    file_set = _source(name).files
    lines = []
    for file in file_set.files if file_set else ():
        assert file_set is not None
        place = resolve.locate(file_set, file, resolve.data_root(root))
        state = "missing"
        if place is not None:
            try:
                resolve.read(file_set, file, place, use_stamp=False)
                state = "ok"
            except (CorruptData, OSError) as error:
                state = str(error)
        lines.append((file.name, str(place or ""), state))
    return pd.DataFrame(lines, columns=["file", "path", "state"])


def _source(name: str) -> Source:
    return SOURCES[checks.one_of("source", name, SOURCES)]

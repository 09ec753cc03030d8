"""Clients: the rows of every client, each in its training, validation or test split."""

from __future__ import annotations

import hashlib
import json
import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from fedhedge import streams
from fedhedge.checks import InvalidInput, boolean, integer, one_of
from fedhedge.data import arrays, folder, labels, splits
from fedhedge.data.scaling import Scaling

_CHUNK = 4096


@dataclass(frozen=True, eq=False, repr=False)
class Clients:
    """An immutable table of rows that belong to clients 0..N-1.

    `features` is float32 or float64 [n, ...shape of a row]; `labels` is a class index (int32 [n]), or a real target
    (float64 [n]) when `classes` is empty; `client` is int32 [n]; `split` is int8 [n] with 0 train, 1 validation,
    2 test. Rows are sorted by (split, client), ties in the order given, so that the rows of a client in a split are
    one slice. `names` are the clients' names, `classes` the original labels in index order, `description` says in
    JSON terms where the rows come from and how they were scaled.

    Features that are a file mapped for reading only (`np.load(path, mmap_mode="r")`, float32 or float64) stay on disk,
    for data larger than memory; their rows must be in that order already. `on_disk` says so.

    Every client needs a training row; the two other splits may be empty. Raises InvalidInput when arrays do not fit
    together, when a feature is not finite (client and column are named), or when a client cannot train.
    """

    features: np.ndarray
    labels: np.ndarray
    client: np.ndarray
    split: np.ndarray
    names: tuple[str, ...] = ()
    classes: tuple[Any, ...] | None = None
    feature_names: tuple[str, ...] = ()
    description: dict[str, Any] = field(default_factory=dict)
    on_disk: bool = field(init=False)

    def __post_init__(self) -> None:
        features = arrays.features(self.features)
        n = len(features)
        client = arrays.indices("client", self.client, n)
        split = arrays.indices("split", self.split, n)
        # Every client has a training row, so that there are no more clients than rows.
        arrays.in_range("client", client, n)
        names = tuple(map(str, self.names)) or tuple(f"client {i}" for i in range(int(client.max()) + 1))
        targets, classes = arrays.targets(self.labels, self.classes, n)
        arrays.in_range("client", client, len(names))
        arrays.in_range("split", split, len(splits.NAMES))
        arrays.distinct("names", names)
        arrays.distinct("classes", classes)
        if self.feature_names and len(self.feature_names) != features.shape[1]:
            raise InvalidInput("feature_names", len(self.feature_names), f"{features.shape[1]} names, one a column")
        key = split.astype(np.int64) * len(names) + client
        columns = [features, targets, client.astype(np.int32), split.astype(np.int8)]
        set_field = object.__setattr__
        set_field(self, "on_disk", arrays.mapped(features))
        if isinstance(self.features, np.memmap) and not self.on_disk:
            kept = "float32 or float64 of this machine's byte order, opened with mmap_mode='r', all of its columns"
            warnings.warn(
                f"the memory-mapped features are copied into memory; what stays on disk: {kept}", stacklevel=2
            )
        if (np.diff(key) < 0).any():
            if self.on_disk:
                allowed = "rows in the order of split, then client; or an array in memory, which is sorted here"
                raise InvalidInput("features", "a memory-mapped file with rows in another order", allowed)
            order = np.argsort(key, kind="stable")
            columns = [arrays.lock(column[order]) for column in columns]
        for name, column in zip(("features", "labels", "client", "split"), columns, strict=True):
            set_field(self, name, arrays.frozen(column))
        set_field(self, "names", names)
        set_field(self, "classes", classes)
        set_field(self, "feature_names", tuple(map(str, self.feature_names)))
        set_field(self, "description", dict(self.description))
        self._check_training_rows()
        self._check_finite()

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        groups: Any,
        *,
        validation: float = 0.1,
        test: float = 0.2,
        seed: int = 0,
        regression: bool = False,
    ) -> Clients:
        """One client for each distinct value of `groups`, in sorted order; splits are drawn within each client.

        `validation` and `test` are the fractions of each client's rows to hold out, class by class where the numbers
        allow it; both may be 0. Column names are kept when X is a DataFrame. Whole numbers and text are classes, other
        numbers are targets; `regression` makes targets of whole numbers too.
        """
        splits.check_fractions(validation, test)
        streams.check_seed(seed)
        features = arrays.features(X)
        targets, classes = labels.encode(y, regression=boolean("regression", regression))
        client, names = labels.encode(groups, "groups")
        arrays.length("labels", targets, len(features))
        arrays.length("groups", client, len(features))
        if not names:
            raise InvalidInput("groups", client[0], "text or whole numbers that name the client of each row")
        split = splits.draw(targets, client, validation, test, seed)
        drawn = {"validation": validation, "test": test, "seed": seed}
        return cls(
            features,
            targets,
            client,
            split,
            names=tuple(map(str, names)),
            classes=classes,
            feature_names=arrays.column_names(X),
            description={"source": "arrays", "splits": drawn},
        )

    @classmethod
    def from_splits(
        cls,
        train: tuple[Any, Any, Any],
        validation: tuple[Any, Any, Any] | None = None,
        test: tuple[Any, Any, Any] | None = None,
        *,
        regression: bool = False,
    ) -> Clients:
        """Clients with the splits already made: each is (X, y, groups), and the two held-out ones may be absent.

        `regression`: as in `from_arrays`.
        """
        given = zip(splits.NAMES, (train, validation, test), strict=True)
        for name, part in given:
            if (part is None and name == "train") or (part is not None and len(part) != 3):
                raise InvalidInput(name, type(part).__name__, "a tuple (X, y, groups)")
        parts = [(number, part) for number, part in enumerate((train, validation, test)) if part is not None]
        features = [arrays.features(part[0]) for _, part in parts]
        if len({block.shape[1:] for block in features}) > 1:
            raise InvalidInput("features", [block.shape[1:] for block in features], "one row shape in all splits")
        columns = arrays.same_columns([part[0] for _, part in parts])
        lengths = [len(block) for block in features]
        for (_, part), n in zip(parts, lengths, strict=True):
            arrays.length("labels", part[1], n)
            arrays.length("groups", part[2], n)
        every_label = np.concatenate([np.asarray(part[1]) for _, part in parts])
        targets, classes = labels.encode(every_label, regression=boolean("regression", regression))
        client, names = labels.encode(np.concatenate([np.asarray(part[2]) for _, part in parts]), "groups")
        return cls(
            features[0] if len(features) == 1 else np.concatenate(features),
            targets,
            client,
            np.repeat([number for number, _ in parts], lengths),
            names=tuple(map(str, names)),
            classes=classes,
            feature_names=columns,
            description={"source": "arrays", "splits": "given"},
        )

    @classmethod
    def from_folder(
        cls,
        path: str | PathLike[str],
        label: str,
        *,
        validation: float = 0.1,
        test: float = 0.2,
        seed: int = 0,
        scaling: str = "standard",
        regression: bool = False,
    ) -> Clients:
        """One client for each .csv or .parquet file of a folder; the file's name without its ending names the client.

        `label` is the column to predict, all others are features and must be numbers. Raises InvalidInput that names
        the file and the column when a site cannot be read. `scaling`: "standard" makes every column of mean 0 and
        standard deviation 1 over all training rows, "none" leaves units as they are. `regression`: as in `from_arrays`.
        """
        splits.check_fractions(validation, test)
        one_of("scaling", scaling, ("standard", "none"))
        table, targets, site = folder.read_sites(path, label)
        clients = cls.from_arrays(
            table, targets, site, validation=validation, test=test, seed=seed, regression=regression
        )
        described = replace(clients, description={**clients.description, "source": "folder", "label": label})
        return described.standardized() if scaling == "standard" else described

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        rows = ", ".join(f"{self.counts(split).sum()} {split}" for split in splits.NAMES)
        kind = f"{len(self.classes)} classes" if self.classes else "regression"
        shape = " x ".join(map(str, self.features.shape[1:]))
        return f"Clients({len(self)} clients; rows: {rows}; features: {shape} {self.features.dtype}; {kind})"

    @cached_property
    def _table(self) -> np.ndarray:
        """Rows of each client in each split, int64[3, N]."""
        key = self.split.astype(np.int64) * len(self) + self.client
        return np.bincount(key, minlength=3 * len(self)).reshape(3, len(self))

    def counts(self, split: str) -> np.ndarray:
        """Rows of each client in a split, int64[N]."""
        return np.array(self._table[splits.code(split)])

    def offsets(self, split: str) -> np.ndarray:
        """Ends of the clients' slices within `rows(split)`, int64[N + 1]: client i has rows offsets[i]:offsets[i+1]."""
        return np.concatenate([[0], np.cumsum(self.counts(split))])

    def rows(self, split: str, client: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Features and labels of a split, of all clients in order or of one; read-only views."""
        offsets = self.offsets(split)
        first, last = 0, len(self)
        if client is not None:
            first = integer("client", client, low=0, high=len(self) - 1)
            last = first + 1
        start = int(self._table[: splits.code(split)].sum())
        chosen = slice(start + offsets[first], start + offsets[last])
        return self.features[chosen], self.labels[chosen]

    def label_counts(self, split: str = "train") -> pd.DataFrame:
        """Rows by client name (index) and class (columns); for a regression there are no columns."""
        width = len(self.classes or ())
        table = np.zeros((len(self), width), np.int64)
        if width:
            chosen = self.split == splits.code(split)
            np.add.at(table, (self.client[chosen], self.labels[chosen]), 1)
        return pd.DataFrame(table, index=pd.Index(self.names, name="client"), columns=list(self.classes or ()))

    def summary(self) -> pd.DataFrame:
        """One line a client: number, name, rows in each split, and the classes among its training rows."""
        held = self.label_counts().to_numpy() > 0
        classes = np.array([str(label) for label in self.classes or ()], dtype=object)
        return pd.DataFrame(
            {
                "client": np.arange(len(self)),
                "name": list(self.names),
                **{split: self.counts(split) for split in splits.NAMES},
                "classes": [", ".join(classes[mask]) for mask in held],
            }
        )

    def digest(self) -> str:
        """SHA-256 of the content (arrays, client names, classes), to tell whether two runs saw the same data."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        result = hashlib.sha256()
        for array in (self.features, self.labels, self.client, self.split):
            result.update(f"{array.dtype.str}{array.shape}".encode())
            result.update(np.ascontiguousarray(array).data)
        result.update(json.dumps([self.names, self.classes]).encode())
        return result.hexdigest()

    def scaled(self, scaling: Scaling) -> Clients:
        """The same clients with `scaling` applied to all rows and recorded in `description["scaling"]`."""
        earlier = self.description.get("scaling")
        whole = scaling.after(Scaling.from_dict(earlier)) if earlier else scaling
        description = {**self.description, "scaling": whole.as_dict()}
        return replace(self, features=arrays.lock(scaling(self.features)), description=description)

    def standardized(self) -> Clients:
        """Every column at mean 0 and standard deviation 1 over all training rows; constant columns are left alone.

        The two numbers are pooled over the clients: outside a simulation that is information about their data.
        """
        return self.scaled(Scaling.standard(self.rows("train")[0]))

    def _check_training_rows(self) -> None:
        empty = np.flatnonzero(self.counts("train") == 0)
        if len(empty):
            hint = f"client {self.names[empty[0]]!r} has none"
            raise InvalidInput("training rows", 0, "at least one for every client", hint)

    def _check_finite(self) -> None:
        for start in range(0, len(self.features), _CHUNK):
            block = self.features[start : start + _CHUNK]
            if np.isfinite(block).all():
                continue
            row, *column = np.argwhere(~np.isfinite(block))[0].tolist()
            name = self.feature_names[column[0]] if self.feature_names else ", ".join(map(str, column))
            where = f"client {self.names[self.client[start + row]]!r}, column {name}"
            raise InvalidInput(f"features of {where}", float(block[row, *column]), "finite numbers")

"""Rows as sites: who holds which row, and what each site must have to take part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from fedhedge.checks import InvalidInput
from fedhedge.data import arrays, labels

ONLY_SITE = "all"


@dataclass(frozen=True, eq=False)
class Sites:
    """The site of every row as `index`, int32[n], and the sites' names in sorted order, as the user wrote them."""

    index: NDArray[np.int32]
    names: tuple[Any, ...]

    @property
    def counts(self) -> NDArray[np.int64]:
        """Rows of each site."""
        return np.bincount(self.index, minlength=len(self.names))

    def of(self, row: int) -> str:
        """How a message names the site of a row: nothing where there is only one site."""
        return "" if self.names == (ONLY_SITE,) else f" of site {str(self.names[self.index[row]])!r}"


def assign(clients: Any, rows: int) -> Sites:
    """Sites of the rows; None puts all of them at one site. Raises InvalidInput."""
    if clients is None:
        return Sites(np.zeros(rows, np.int32), (ONLY_SITE,))
    arrays.length("clients", clients, rows)
    index, names = labels.encode(clients, "clients")
    if not names:
        raise InvalidInput("clients", float(index[0]), "text or whole numbers that name the client of each row")
    return Sites(index, names)


def check_columns(X: Any) -> None:
    """Refuse a DataFrame with a column of text, naming the column."""
    for name in X if isinstance(X, pd.DataFrame) else ():
        if pd.api.types.is_numeric_dtype(X[name]):
            continue
        text = X[name].notna() & pd.to_numeric(X[name], errors="coerce").isna()
        if text.any():
            example = str(X[name][text].iloc[0])
            raise InvalidInput(
                f"column {str(name)!r}", example, "numbers", "encode text as numbers, or drop the column"
            )


def check_finite(X: NDArray[np.float64], columns: Sequence[str] | None, sites: Sites | None = None) -> None:
    """Refuse a feature that is NaN or infinite, naming the column and the site."""
    bad = ~np.isfinite(X)
    if bad.any():
        row, column = (int(at) for at in np.argwhere(bad)[0])
        name = column if columns is None else repr(str(columns[column]))
        where = f"column {name}{'' if sites is None else sites.of(row)}"
        hint = f"row index {row}; {bad.sum()} values in all"
        raise InvalidInput(where, float(X[row, column]), "finite numbers (no NaN, no inf)", hint)


def check_rows(sites: Sites) -> None:
    """Refuse a site with a single row."""
    single = np.flatnonzero(sites.counts < 2)
    if len(single):
        name = str(sites.names[single[0]])
        raise InvalidInput(f"rows of site {name!r}", "1 sample", "2 or more rows at each site")


def classes_of(
    y: Any, name: str, sites: Sites, declared: Any, *, allow_one_class: bool
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """The classes in sorted order, and the class index of each row, int32[n].

    name: of the label column, for messages. Raises InvalidInput naming the site where a label is missing or is none
    of the `declared` classes, where all labels of a site are of one class, unless allowed, and when there are not two
    classes in all.
    """
    missing = pd.isna(y)
    if missing.any():
        row = int(missing.argmax())
        raise InvalidInput(f"{name}{sites.of(row)}", y[row], "a label in every row (no NaN)", f"row index {row}")
    kind = type_of_target(y, input_name="y")
    if kind not in ("binary", "multiclass"):
        raise InvalidInput(name, y[0], "class labels: text or whole numbers", f"Unknown label type: {kind}")
    if declared is None:
        classes = np.unique(y)
        if len(classes) < 2:
            raise InvalidInput(name, f"one class, {classes[0]!s}", "two classes or more")
    else:
        classes = _declared(declared)
        unseen = ~np.isin(y, classes)
        if unseen.any():
            row = int(unseen.argmax())
            value = y[row].item() if isinstance(y[row], np.generic) else y[row]
            known = ", ".join(map(str, classes))
            raise InvalidInput(f"{name}{sites.of(row)}", value, f"the declared classes {known}", f"row index {row}")
    codes = np.searchsorted(classes, y).astype(np.int32)
    if not allow_one_class:
        _check_every_site(codes, classes, name, sites)
    return classes, codes


def _declared(classes: Any) -> NDArray[Any]:
    if isinstance(classes, str) or np.ndim(classes) != 1 or len(set(classes)) < max(2, len(classes)):
        raise InvalidInput("classes", classes, "None, or a list of two or more different labels")
    return np.unique(np.asarray(classes))


def _check_every_site(codes: NDArray[np.int32], classes: NDArray[Any], name: str, sites: Sites) -> None:
    for number, site in enumerate(sites.names):
        held = np.unique(codes[sites.index == number])
        if len(held) == 1:
            raise InvalidInput(
                f"{name} of site {str(site)!r}",
                f"one class, {classes[held[0]]!s}",
                "two classes or more at each site",
                "allow_one_class=True trains with such sites",
            )

"""A site's own table, as the federation's terms say it is to be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedhedge.checks import InvalidInput
from fedhedge.data import Clients, splits
from fedhedge.data.folder import read_site
from fedhedge.deployment.federation import Federation
from fedhedge.estimators import bounds


def read(path: Path, federation: Federation, site: str) -> Clients:
    """The rows of one site, as the only client of a table; the same rows and splits as in a simulation of all sites.

    Raises InvalidInput that names the file, and the column or the label that does not suit the terms.
    """
    terms, described = federation.terms, federation.settings["data"]
    if site not in terms.sites:
        raise InvalidInput("site", site, f"one of the sites of the federation: {', '.join(terms.sites)}")
    table, labels = read_site(path, described["label"])
    missing = [name for name in terms.columns if name not in table.columns]
    if missing:
        raise InvalidInput(f"columns of {path.name}", f"lacks {', '.join(missing)}", "the features of the federation")
    values = table[list(terms.columns)].to_numpy()
    if isinstance(terms.features, dict):
        values = bounds.resolve(terms.features, values, terms.columns)(values)
    if terms.constant:
        values = np.column_stack([values, np.full(len(values), terms.constant)])
    known = {label: code for code, label in enumerate(terms.classes)}
    found = labels.tolist()
    for row, label in enumerate(found, start=1):
        if label not in known:
            allowed = f"the classes of the federation: {', '.join(map(str, terms.classes))}"
            raise InvalidInput(f"{path.name}, column {described['label']!r}", label, allowed, f"row {row}")
    codes = np.array([known[label] for label in found], np.int32)
    number = np.full(len(codes), terms.sites.index(site), np.int32)
    split = splits.draw(codes, number, described["validation"], described["test"], described["seed"])
    return Clients(
        values,
        codes,
        np.zeros(len(codes), np.int32),
        split,
        names=(site,),
        classes=terms.classes,
        feature_names=(*terms.columns, *(["constant"] if terms.constant else [])),
        description={"source": "folder"},
    )

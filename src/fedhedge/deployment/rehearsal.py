"""The simulation of a federation on one machine, from the same file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fedhedge import files
from fedhedge.checks import InvalidInput
from fedhedge.config.read import override, read_toml
from fedhedge.data import Clients
from fedhedge.deployment import tables
from fedhedge.deployment.federation import FEDERATION, Federation

SUFFIXES = (".csv", ".parquet")


class Rehearsal(Federation):
    """federation.toml as a simulation, with the tables of all sites in the folder `data.path` ("sites" by default).

    Of [federation] only what it says of the tables counts: who takes part is up to [availability] (everyone without
    it), and nobody is late. With [privacy] noise is drawn from the seed, as in any simulation. Raises InvalidInput.
    """

    def __init__(self, content: Mapping[str, Any], name: str) -> None:
        super().__init__(content, name)
        # Beside what a simulation has on record, since other columns make another run.
        self.settings[FEDERATION] = files.plain(vars(self.terms) | {"features": self.terms.ordered})

    @cached_property
    def clients(self) -> Clients:
        """The rows of all sites, each in the split that the site itself has it in. Raises InvalidInput."""
        sites, terms = [self._table(name) for name in self.terms.sites], self.terms
        return Clients(
            np.concatenate([site.features for site in sites]),
            np.concatenate([site.labels for site in sites]),
            np.repeat(np.arange(len(sites)), [len(site.labels) for site in sites]),
            np.concatenate([site.split for site in sites]),
            names=terms.sites,
            classes=terms.classes,
            feature_names=sites[0].feature_names,
            description={"source": "folder"},
        )

    def _table(self, site: str) -> Clients:
        folder = Path(self.settings["data"]["path"])
        for path in (folder / (site + suffix) for suffix in SUFFIXES):
            if path.is_file():
                return tables.read(path, self, site)
        allowed = f"a folder with {site}.csv or {site}.parquet, and so for each site: set data.path"
        raise InvalidInput("data.path", str(folder), allowed)


def load_rehearsal(path: str | Path, overrides: Sequence[str] = ()) -> Rehearsal | None:
    """Read federation.toml, as `load_config` reads its file; None for a file without a table [federation]."""
    content = read_toml(Path(path))
    override(content, overrides)
    return Rehearsal(content, Path(path).stem) if FEDERATION in content else None

"""site.toml: what a site's owner decides, on the site's own disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedhedge import checks
from fedhedge.checks import InvalidInput
from fedhedge.config.read import read_toml
from fedhedge.config.tables import below, parameters, settle, table
from fedhedge.data import Clients
from fedhedge.data.splits import NAMES
from fedhedge.deployment import tables
from fedhedge.deployment.budget import begin_budget, open_budget
from fedhedge.deployment.federation import Federation, load_federation
from fedhedge.deployment.keys import load_private, load_roster
from fedhedge.deployment.masking_pairs import Signing
from fedhedge.deployment.sampler import gaussian
from fedhedge.deployment.site import Site
from fedhedge.deployment.site_guard import LEDGER
from fedhedge.privacy import Privacy

ACCEPT = {"epsilon": 3.0, "delta": 1e-6, "methods": ["DpDroAdmm"], "row_bound": 1.0, "least_noise": 10.0}
EXAMPLE = "no_privacy = true, or " + ", ".join(f"{key} = {value}" for key, value in ACCEPT.items())


@dataclass(frozen=True)
class SiteFile:
    """The keys of site.toml; paths are relative to the file.

    site: its name in the federation. federation: the owner's own copy of federation.toml, which decides what the site
    takes part in. table: its rows. state: a folder of its own, for the states of experiments and the privacy ledger.
    server: host:port. certificate: of the authority that vouches for the server. key: the site's private key. share:
    splits whose mean loss and accuracy may leave the site, without noise. anchor: a file elsewhere than in `state`,
    which tells when the ledger there was lost or put back to an older one. peers: a folder with the public keys of all
    sites, NAME.pub, which signed masked sums need, got from elsewhere than the server. accept: what the owner accepts,
    as `open_budget` takes it.
    """

    site: str
    federation: Path
    table: Path
    state: Path
    server: str
    certificate: Path
    key: Path
    accept: dict[str, Any]
    share: tuple[str, ...] = ()
    anchor: Path | None = None
    peers: Path | None = None

    def open(self) -> Site:
        """The site, with its ledger locked. Raises InvalidInput, Refused, LedgerBusy."""
        federation, rows = self._prepared()
        trained = int(rows.counts("train")[0])
        guard = open_budget(self.state, self.accept, federation, self.site, trained, self.share, self.anchor)
        signing = self._signing(federation)
        return Site(federation, self.site, rows, self.state, guard, gaussian, self.share, signing)

    def _signing(self, federation: Federation) -> Signing | None:
        """The keys with which masked sums are signed."""
        if self.peers is None or federation.masking is None or not federation.masking.signed:
            return None
        private, roster = load_private(self.key), load_roster(self.peers, federation.terms.sites)
        if roster[self.site] != private.public_key():
            raise InvalidInput("peers", str(self.peers / f"{self.site}.pub"), f"the public half of {self.key}")
        return Signing(private, roster)

    def begin(self) -> Path:
        """Begin the ledger of the site's table, and return where it is; once only. Raises InvalidInput, LedgerBusy."""
        federation, rows = self._prepared()
        begin_budget(self.state, self.accept, federation, self.site, int(rows.counts("train")[0]), self.anchor)
        return self.state / LEDGER

    def _prepared(self) -> tuple[Federation, Clients]:
        """What was agreed, and the site's rows."""
        federation = load_federation(self.federation)
        rows = tables.read(self.table, federation, self.site)
        self.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        return federation, rows


def load_site(path: Path) -> SiteFile:
    """Read site.toml; raises InvalidInput that names the key."""
    content = read_toml(path)
    values = settle(content, parameters(SiteFile), "", {}, {})
    values["accept"] = _accept(table(values["accept"], "accept", EXAMPLE))
    for key in ("site", "server"):
        checks.instance(key, values[key], str, "a text")
    host, _, port = values["server"].rpartition(":")
    if not host or "/" in host or not port.isdecimal():
        raise InvalidInput("server", values["server"], "host:port, such as server.example.org:8000")
    for key in ("federation", "table", "state", "certificate", "key"):
        checks.instance(key, values[key], str, "a path")
        values[key] = path.parent / values[key]
    for key in ("anchor", "peers"):
        if values[key] is not None:
            checks.instance(key, values[key], str, "a path")
            values[key] = path.parent / values[key]
    anchor = values["anchor"]
    if anchor is not None and (anchor.is_dir() or anchor.resolve().is_relative_to(values["state"].resolve())):
        hint = "what loses that folder, or puts it back to an older copy, must not do so to the anchor"
        raise InvalidInput("anchor", str(anchor), f"a file outside the folder `state`, {values['state']}", hint)
    if not isinstance(values["share"], list | tuple):
        raise InvalidInput("share", values["share"], "a list of " + ", ".join(NAMES))
    values["share"] = tuple(checks.one_of("share", split, NAMES) for split in values["share"])
    return SiteFile(**values)


def _accept(content: dict[str, Any]) -> dict[str, Any]:
    if checks.boolean("accept.no_privacy", content.pop("no_privacy", False)):
        if content:
            raise InvalidInput("accept.no_privacy", True, "true alone, or a budget", f"here with {', '.join(content)}")
        return {"no_privacy": True}
    above = dict.fromkeys(parameters(SiteFile), "a key of the whole file: it stands above the table [accept]")
    values = settle(content, parameters(_accepted), "accept", {}, above)
    with below("accept"):
        return _accepted(**values)


def _accepted(
    epsilon: float, delta: float, methods: Sequence[str], row_bound: float, least_noise: float
) -> dict[str, Any]:
    """The keys of [accept] as `Accepted` takes them."""
    budget = Privacy(epsilon, delta)
    return {"budget": budget, "methods": methods, "row_bound": row_bound, "least_noise": least_noise}

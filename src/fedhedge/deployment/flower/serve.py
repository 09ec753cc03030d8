"""The two long-running commands: the coordinator with its SuperLink, and a site with its SuperNode."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fedhedge.deployment.federation import Federation
from fedhedge.deployment.flower.answer import answer
from fedhedge.deployment.flower.coordinate import coordinate
from fedhedge.deployment.flower.processes import be_quiet
from fedhedge.deployment.flower.superlink import SuperLink
from fedhedge.deployment.flower.supernode import SuperNode
from fedhedge.deployment.keys import load_private, load_roster
from fedhedge.deployment.progress import Progress
from fedhedge.deployment.proof import Signer, Verifier
from fedhedge.deployment.site_file import SiteFile
from fedhedge.simulation import Run

FLOWER = "flower"


def serve(
    federation: Federation, keys: Path, folder: Path, host: str, port: int, say: Callable[[str], None]
) -> tuple[Run, Progress]:
    """Coordinate a run to its end, going on from the checkpoint in `folder`, each time as a new run of Flower."""
    be_quiet(folder / FLOWER)
    signer = Signer(keys)
    link = SuperLink(folder / FLOWER, keys, host, port)
    try:
        for name in federation.terms.sites:
            link.register(name)
        say(f"listening on {link.address}")
        signed = federation.masking is not None and federation.masking.signed
        roster = load_roster(keys / "sites", federation.terms.sites) if signed else None
        run, coordinator = coordinate(federation, link.runtime, link.submit(), signer, folder, say, roster)
        return run, coordinator.progress
    finally:
        link.stop()


def take_part(described: SiteFile, say: Callable[[str], None]) -> None:
    """Answer the server's requests until interrupted."""
    verify = Verifier(described.certificate)
    # A key that is none would otherwise show only as a node that ends again and again.
    load_private(described.key)
    site = described.open()
    be_quiet(described.state / FLOWER)
    node = SuperNode(described.state / FLOWER, described.server, described.certificate, described.key, say)
    say(f"site {site.name}: {site.clients.counts('train')[0]} rows to train on, experiment {site.fingerprint[:12]}")
    try:
        answer(site, node, verify)
    finally:
        node.stop()
        site.guard.close()

"""How the coordinator reaches sites: one question to some of them at once, and what came back in time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from fedhedge.deployment.parcel import Parcel
from fedhedge.deployment.site import Site

# What stands for a reply that is none, as the transport words it.
Failure = str


class Link(Protocol):
    """The transport; Flower in the field, plain calls in tests and rehearsals."""

    def online(self) -> list[str]:
        """Names of the sites that can be asked now."""

    def ask(self, requests: Mapping[str, Parcel], seconds: float) -> dict[str, Parcel | Failure]:
        """Replies of those who answered within `seconds`, by site; who is missing did not.

        A request that was not answered by then is dead: its site is not to work on it any more.
        """


class Direct:
    """Sites in this process, each asked by a call: a federation without a network."""

    def __init__(self, sites: Mapping[str, Site]) -> None:
        self.sites = dict(sites)

    def online(self) -> list[str]:
        return list(self.sites)

    def ask(self, requests: Mapping[str, Parcel], seconds: float) -> dict[str, Parcel | Failure]:
        return {name: self.sites[name].handle(request) for name, request in requests.items() if name in self.sites}

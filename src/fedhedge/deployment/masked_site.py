"""A site's side of masked sums: one session at a time, on the disk before each answer, and no round opened twice."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fedhedge import files
from fedhedge.checks import InvalidInput
from fedhedge.deployment.masking_client import MaskingClient
from fedhedge.deployment.masking_messages import Aborted, BadMessage
from fedhedge.deployment.masking_pairs import Signing
from fedhedge.deployment.masking_terms import Masking, Vector, from_arrays
from fedhedge.deployment.memory import NEVER
from fedhedge.deployment.parcel import AGREE, MASK, SHARE, UNMASK, Parcel, Rejected
from fedhedge.deployment.programme import Programme
from fedhedge.privacy.noise import FloatArray


class MaskedSite:
    """What a site answers in the trips of masked sums.

    A file for each experiment holds the session that the site is in, with its secrets, and the last round that it
    opened: of that round, and of those before, it never sends a masked upload again, since two sums of the same uploads
    over different sites give away their difference. It is written, readable by its owner only, before an answer leaves.

    sites: of the federation. signing: where its sums are signed. Raises InvalidInput.
    """

    def __init__(
        self, masking: Masking, programme: Programme, sites: Sequence[str], name: str, signing: Signing | None
    ) -> None:
        if (signing is not None) != masking.signed:
            allowed = "a folder with the public keys of all sites where masking.signed = true, and only there"
            raise InvalidInput("peers", None if signing is None else "given", allowed)
        self.masking, self.vector = masking, Vector(programme)
        self._sites, self._name, self._signing = frozenset(sites), name, signing

    def begin(self, path: Path, experiment: str, request: Parcel) -> bytes:
        """Fresh keys for a new session, in place of the one before. Raises Rejected."""
        before, about = _read(path), request.about
        number, clients = about["round"], about.get("clients")
        if number <= before["opened"]:
            raise Rejected(f"round {number} was opened here: the site does not take part in it again")
        if _is_of(before, request):
            raise Rejected("this session was begun already")
        if not isinstance(clients, list) or any(name not in self._sites for name in clients):
            raise Rejected("a session with others than the sites of the federation")
        kept = {"opened": before["opened"], "round": number, "attempt": about.get("attempt"), "clients": clients}
        try:
            client = self._client(experiment, kept)
        except InvalidInput as error:
            raise Rejected(f"no session: {error}") from None
        answer = client.advertise()
        _write(path, kept, client)
        return answer

    def answer(self, path: Path, experiment: str, request: Parcel, upload: Callable[[], FloatArray]) -> bytes:
        """The answer to any later trip. upload: called once the session has come to it. Raises Rejected."""
        kept = _read(path)
        if not _is_of(kept, request):
            raise Rejected("of another session than the one that this site is in")
        client = self._client(experiment, kept)
        message = from_arrays(request.arrays)
        try:
            if request.kind == MASK:
                if client.step != "mask":
                    raise Rejected(f"asked for a masked upload, but what comes next is {client.step!r}")
                answer = client.mask(message, upload())
            else:
                answer = {SHARE: client.share, AGREE: client.agree, UNMASK: client.unmask}[request.kind](message)
        except (BadMessage, Aborted) as error:
            raise Rejected(str(error)) from None
        except InvalidInput:
            # Its message would hold an entry of the upload.
            raise Rejected("an upload with entries too large for a masked sum") from None
        if request.kind == UNMASK:
            kept["opened"] = kept["round"]
        _write(path, kept, client)
        return answer

    def end(self, path: Path) -> None:
        """Forget the session, whose secrets nobody needs any more."""
        if path.exists():
            _write(path, {"opened": _read(path)["opened"]}, None)

    def _client(self, experiment: str, kept: dict[str, Any]) -> MaskingClient:
        session = self.masking.session(experiment, kept["round"], kept["attempt"], kept["clients"], self.vector)
        if "client" not in kept:
            return MaskingClient(session, self._name, self._signing)
        return MaskingClient.restore(kept["client"].encode(), session, self._name, self._signing)


def _is_of(kept: dict[str, Any], request: Parcel) -> bool:
    return "client" in kept and all(kept[name] == request.about.get(name) for name in ("round", "attempt"))


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_bytes()) if path.exists() else {"opened": NEVER}
    return found


def _write(path: Path, kept: dict[str, Any], client: MaskingClient | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    content = kept if client is None else kept | {"client": client.store().decode()}
    # Through a folder that only its owner can enter, so that the secrets are never readable by others.
    with tempfile.TemporaryDirectory(prefix=".masking.", dir=path.parent) as staged:
        part = Path(staged) / path.name
        files.write_json(part, content)
        os.chmod(part, 0o600)
        os.replace(part, path)

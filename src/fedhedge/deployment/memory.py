"""What a site remembers of an experiment: its state, and the update that waits for the coordinator's word."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fedhedge.algorithms.base import Tree
from fedhedge.deployment.parcel import Parcel, pack, unpack
from fedhedge.simulation import checkpoint

NEVER = -1


@dataclass(frozen=True)
class Pending:
    """An update that is not final: its round, the digest of what was asked, the new state, the reply that was sent."""

    round: int
    digest: str
    state: Tree
    reply: Parcel


@dataclass(frozen=True)
class Memory:
    """What a site keeps between messages.

    state: final, [1, ...]. committed: the last round whose upload was used, -1 before the first. pending: the update
    after that. asked: the round of the report of a first phase, and that reply, which the work of this round begins
    with.
    """

    state: Tree
    committed: int = NEVER
    pending: Pending | None = None
    asked: Pending | None = None

    def settle(self, acknowledged: int) -> Memory:
        """Memory after the coordinator's word that `acknowledged` is the last round in which it used an upload of ours.

        The pending update becomes final if it is that round's, and is forgotten otherwise.
        """
        if self.pending is None:
            return self
        if self.pending.round == acknowledged:
            return replace(self, state=self.pending.state, committed=acknowledged, pending=None)
        return replace(self, pending=None)

    def agrees(self, acknowledged: int) -> bool:
        """Whether the state is that of the last upload that was used, which fails after a site lost its folder."""
        return self.committed == acknowledged


def write(path: Path, memory: Memory, about: dict[str, Any]) -> None:
    """Write a memory, atomically; about: the experiment it belongs to."""
    arrays = pack(memory.state, "state")
    waiting = {}
    for name, part in (("pending", memory.pending), ("asked", memory.asked)):
        if part is not None:
            arrays |= pack(part.state, f"{name}/state") | {
                f"{name}/reply/{key}": array for key, array in part.reply.arrays.items()
            }
            waiting[name] = {"round": part.round, "digest": part.digest, "about": dict(part.reply.about)}
    described = {"committed": memory.committed, **waiting}
    arrays["memory"] = np.frombuffer(json.dumps(described, allow_nan=False).encode(), np.uint8)
    checkpoint.write(path, about, arrays)


def read(path: Path, like: Tree, about: dict[str, Any]) -> Memory:
    """What `write` wrote; like: a client's state, [1, ...].

    Raises CheckpointMismatch when the file is damaged or of another experiment.
    """
    _, arrays = checkpoint.read(path, about)
    described = json.loads(arrays["memory"].tobytes())
    parts = {}
    for name in ("pending", "asked"):
        if name in described:
            said, prefix = described[name], f"{name}/reply/"
            sent = {key.removeprefix(prefix): value for key, value in arrays.items() if key.startswith(prefix)}
            state = checkpoint.restore(like, arrays, f"{name}/state")
            parts[name] = Pending(said["round"], said["digest"], state, Parcel("done", said["about"], sent))
    state = unpack(like, {key: value for key, value in arrays.items() if key.startswith("state")}, "state")
    return Memory(state, described["committed"], **parts)

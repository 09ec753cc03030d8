"""A note of how far a ledger had come, by which missing last lines are found."""

from __future__ import annotations

import json
from pathlib import Path

from fedhedge import checks, files
from fedhedge.privacy.ledger_file import LedgerDamaged


class Anchor:
    """(number of lines, checksum of the last) of a ledger, in a small file of its own.

    It is written after the line that it speaks of, so that a crash in between leaves a ledger that is longer than the
    note says, which is sound; a ledger that is shorter, or different at that line, was cut or exchanged. Whoever
    changes ledger and note together is not found: guard the folder as you guard the table itself.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def set(self, head: tuple[int, str]) -> None:
        """Note where the ledger ends, atomically."""
        files.write_json(self.path, {"lines": head[0], "checksum": head[1]})

    def check(self, ledger: Path, *, required: bool) -> None:
        """Raises LedgerDamaged where the ledger has not what was noted, or nothing was noted although `required`."""
        try:
            noted = json.loads(self.path.read_bytes())
            lines, checksum = checks.integer("lines", noted["lines"], low=1), str(noted["checksum"])
        except FileNotFoundError:
            if required:
                raise LedgerDamaged(ledger, 1, f"the note {self.path} of where the ledger ends is missing") from None
            return
        except (ValueError, LookupError, TypeError):
            raise LedgerDamaged(ledger, 1, f"the note {self.path} of where the ledger ends cannot be read") from None
        found = ledger.read_bytes().split(b"\n")[:-1]
        if len(found) < lines:
            raise LedgerDamaged(ledger, len(found) + 1, f"the file ends here; {lines} lines had been written")
        if not found[lines - 1].startswith(f'{{"checksum":"{checksum}"'.encode()):
            raise LedgerDamaged(ledger, lines, "not the line that had been written")

"""An append-only file of JSON lines, each chained to the one before by a SHA-256 checksum, for one process at a time.

Line 1 is a header with the client's name. Every line reads {"checksum": ..., "record": {...}} with
checksum = SHA-256(checksum of the line before + canonical JSON of the record). Any later change to a line, and any line
lost, added or moved before the end, is found on opening. Removing the last lines, or the whole file, leaves nothing
to find: guard the folder as you guard the table itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

if sys.platform != "win32":
    import fcntl

Record = dict[str, Any]
_FORMAT = "fedhedge privacy ledger 1"


class LedgerDamaged(RuntimeError):
    """A ledger file whose content cannot be trusted; names the file, the line and what is wrong."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        self.path = path
        self.line = line
        self.reason = reason
        super().__init__(path, line, reason)

    def __str__(self) -> str:
        return f"ledger {self.path}, line {self.line}: {self.reason}; refused, since the spend cannot be proven"


class LedgerBusy(RuntimeError):
    """A ledger file that is already open, here or in another process."""


class LedgerFile:
    """The records of one client's ledger on disk, under a lock that is held until `close`.

    records: the intact records after the header. torn: the text of a last line that a crash cut short, now removed from
    the file, or None. A record may be acted upon only after its `append` returned, so nothing was released under
    a torn one.

    Raises LedgerBusy, LedgerDamaged, and OSError where the system has no POSIX file locks.
    """

    def __init__(self, path: Path, client: str) -> None:
        self.path = path
        self.torn: str | None = None
        self.records: list[Record] = []
        self._checksum, self._size, self._lines = "", 0, 0
        path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = open(path, "a+b")  # noqa: SIM115 - stays open, with its lock, until close()
        try:
            self._lock()
            self._load({"client": client, "format": _FORMAT})
        except BaseException:
            self.close()
            raise

    @property
    def head(self) -> tuple[int, str]:
        """(number of lines, checksum of the last): kept elsewhere, it tells when last lines are missing."""
        return self._lines, self._checksum

    def append(self, record: Record) -> None:
        """Add a record; when this returns, it is on the disk.

        Raises LedgerDamaged when the file was changed, moved or deleted since it was opened, and OSError when it cannot
        be written. After any failure the ledger is closed, since what reached the disk is unknown until it is
        opened again.
        """
        if self._stream.closed:
            raise RuntimeError(f"ledger {self.path} is closed")
        line = self._line(record)
        try:
            self._check_untouched()
            self._write(line + b"\n")
        except BaseException:
            self.close()
            raise
        self._accept(line, record)

    def close(self) -> None:
        """Release the lock; the content stays."""
        self._stream.close()

    def _lock(self) -> None:
        if sys.platform == "win32":
            raise OSError(f"ledger {self.path}: this system has no POSIX file locks to keep a second process out")
        try:
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LedgerBusy(f"ledger {self.path} is already open, here or in another process") from None

    def _load(self, header: Record) -> None:
        self._stream.seek(0)
        *lines, tail = self._stream.read().split(b"\n")
        if not lines:
            self._begin(header, tail)
            return
        for line in lines:
            self._accept(line, self._verify(line))
        found = self.records.pop(0)
        if found != header:
            raise LedgerDamaged(self.path, 1, f"the header is {found}, not {header}")
        if tail:
            self._mend(tail)

    def _begin(self, header: Record, tail: bytes) -> None:
        line = self._line(header)
        if not line.startswith(tail):
            raise LedgerDamaged(self.path, 1, "not the header of this client's ledger")
        self._stream.truncate(0)
        self._write(line + b"\n")
        self._accept(line, header)
        self.records.clear()
        _sync_folder(self.path.parent)

    def _mend(self, tail: bytes) -> None:
        try:
            record = self._verify(tail)
        except LedgerDamaged:
            self.torn = tail.decode(errors="replace")
            self._stream.truncate(self._size)
        else:
            self._write(b"\n")
            self._accept(tail, record)

    def _verify(self, line: bytes) -> Record:
        number = self._lines + 1
        try:
            record = json.loads(line)["record"]
            intact = line == self._line(record)
        except (ValueError, LookupError, TypeError, RecursionError):
            raise LedgerDamaged(self.path, number, "not a line of a privacy ledger") from None
        if not intact or not isinstance(record, dict):
            raise LedgerDamaged(self.path, number, "the checksum does not follow from this line and those before it")
        return record

    def _line(self, record: Record) -> bytes:
        checksum = hashlib.sha256(self._checksum.encode() + _canonical(record)).hexdigest()
        return _canonical({"checksum": checksum, "record": record})

    def _accept(self, line: bytes, record: Record) -> None:
        self.records.append(record)
        self._checksum = json.loads(line)["checksum"]
        self._size += len(line) + 1
        self._lines += 1

    def _write(self, content: bytes) -> None:
        self._stream.write(content)
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def _check_untouched(self) -> None:
        held = os.fstat(self._stream.fileno())
        try:
            same = os.path.samestat(held, os.stat(self.path))
        except FileNotFoundError:
            same = False
        if not same or held.st_size != self._size:
            raise LedgerDamaged(self.path, self._lines, "the file was changed, moved or deleted while in use")


def _canonical(content: Record) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

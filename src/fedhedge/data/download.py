"""Downloads with a size limit, checked before anything gets the name of a data file."""

from __future__ import annotations

import hashlib
import http.client
import io
import tarfile
import urllib.request
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from fedhedge import files
from fedhedge.data.resolve import Archive, CorruptData, DataFile, FileSet, check_content, gunzip, locate

_TIMEOUT = 30.0
# gzip adds a few bytes a block, and a header, to what it cannot shrink.
_GZIP_MARGIN = 1 << 16


class DownloadFailed(OSError):
    """No address gave the file; the message names each with its reason, and the folder to fill by hand."""


def fetch_files(file_set: FileSet, root: Path) -> list[Path]:
    """Download the files of a source that are missing below `root`; returns the paths written.

    Content is checked by size and checksum, then written under a temporary name that becomes the file's own by one
    rename. Raises DownloadFailed when no address gives the right content, OSError when the folder cannot be written.
    """
    missing = [file for file in file_set.files if locate(file_set, file, root) is None]
    folder = root / file_set.folder
    archive = file_set.archive
    if archive is None:
        return [path for file in missing for path in _fetch_file(file_set, file, folder)]
    if not missing:
        return []
    addresses = [url + archive.name for url in file_set.urls]
    return _first_good(addresses, folder, archive.size_limit, partial(_extract, archive, missing, folder))


def _fetch_file(file_set: FileSet, file: DataFile, folder: Path) -> list[Path]:
    target = folder / f"{file.name}.gz"
    addresses = [url + target.name for url in file_set.urls]
    return _first_good(addresses, folder, file.size + _GZIP_MARGIN, partial(_keep, file, target))


def _keep(file: DataFile, target: Path, packed: bytes) -> list[Path]:
    check_content(file, gunzip(packed, file.size, target), target)
    files.write_bytes(target, packed)
    return [target]


def _extract(archive: Archive, wanted: list[DataFile], folder: Path, packed: bytes) -> list[Path]:
    found = hashlib.sha256(packed).hexdigest()
    if found != archive.sha256:
        raise CorruptData(f"{archive.name}: SHA-256 is {found}, expected {archive.sha256}")
    # Only members known by name are read, so that no path inside the archive matters.
    by_name = {file.name: file for file in wanted}
    written = []
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as content:
        for member in content:
            file = by_name.get(Path(member.name).name)
            stream = content.extractfile(member) if file else None
            if file is None or stream is None:
                continue
            raw = stream.read(file.size + 1)
            check_content(file, raw, folder / file.name)
            files.write_bytes(folder / file.name, raw)
            written.append(folder / file.name)
    if len(written) < len(wanted):
        raise CorruptData(f"{archive.name}: holds {len(written)} of the {len(wanted)} files")
    return written


def _first_good(addresses: Iterable[str], folder: Path, limit: int, use: Callable[[bytes], list[Path]]) -> list[Path]:
    reasons = []
    for address in addresses:
        try:
            packed = _download(address, limit)
        except (OSError, http.client.HTTPException) as error:
            reasons.append(f"{address}: {error}")
            continue
        try:
            return use(packed)
        except CorruptData as error:
            reasons.append(f"{address}: {error}")
    raise DownloadFailed("; ".join(reasons) + f"; or put the file in {folder} yourself")


def _download(address: str, limit: int) -> bytes:
    with urllib.request.urlopen(address, timeout=_TIMEOUT) as response:
        content: bytes = response.read(limit + 1)
        expected = response.headers.get("Content-Length")
    if len(content) > limit:
        raise OSError(f"more than the {limit} bytes that the file can have")
    if expected is not None and len(content) < int(expected):
        raise OSError(f"the connection ended after {len(content)} of {expected} bytes")
    return content

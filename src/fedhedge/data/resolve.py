"""Where the files of a source lie, and whether their content is the published one."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from fedhedge import files

ROOT_VARIABLE = "FEDHEDGE_DATA"


class MissingData(FileNotFoundError):
    """Files of a source are not there; the message names folder, files and the command that fetches them."""


class CorruptData(ValueError):
    """A file is not what was published; the message names the file, what was found and what was expected."""


@dataclass(frozen=True)
class DataFile:
    """One file in its raw form: its name, its exact size in bytes, and the MD5 of its content."""

    name: str
    size: int
    md5: str


@dataclass(frozen=True)
class Archive:
    """One .tar.gz that holds all raw files of a source."""

    name: str
    size_limit: int
    sha256: str


@dataclass(frozen=True)
class FileSet:
    """The raw files of a source below `root/folder`, and where else they may lie or come from.

    `elsewhere` are system folders; `urls` are web folders that hold each file as .gz, or the `archive`; `unpack` reads
    the content of a file from a .zip of the same stem.
    """

    folder: str
    files: tuple[DataFile, ...]
    urls: tuple[str, ...]
    elsewhere: tuple[Path, ...] = ()
    archive: Archive | None = None
    unpack: Callable[[Path], bytes] | None = None


def user_cache() -> Path:
    """The user's cache folder for this package."""
    return platformdirs.user_cache_path("fedhedge")


def data_root(root: str | os.PathLike[str] | None = None) -> Path:
    """Folder of the data: the argument, else the environment variable FEDHEDGE_DATA, else the user's cache."""
    return Path(root or os.environ.get(ROOT_VARIABLE) or user_cache() / "data").expanduser()


def locate(file_set: FileSet, file: DataFile, root: Path) -> Path | None:
    """First place that has the file: raw or .gz below the root, a system folder, or an archive to unpack."""
    for folder in (root / file_set.folder, *file_set.elsewhere):
        for name in (file.name, f"{file.name}.gz"):
            if (folder / name).is_file():
                return folder / name
    if file_set.unpack is not None:
        packed = (root / file_set.folder / file.name).with_suffix(".zip")
        for path in (_unpacked(file_set, file), packed):
            if packed.is_file() and path.is_file():
                return path
    return None


def locate_all(file_set: FileSet, root: Path) -> list[Path]:
    """Places of all files of a source; MissingData names those that are nowhere."""
    places = [locate(file_set, file, root) for file in file_set.files]
    missing = [file.name for file, place in zip(file_set.files, places, strict=True) if place is None]
    if missing:
        raise MissingData(
            f"{file_set.folder}: {', '.join(missing)} not found in {root / file_set.folder}; put the files there (raw "
            f"or .gz), set {ROOT_VARIABLE} to the folder that holds {file_set.folder}/, or run "
            f"`fedhedge data fetch {file_set.folder}`"
        )
    return [place for place in places if place is not None]


def read(file_set: FileSet, file: DataFile, path: Path, *, use_stamp: bool = True) -> bytes:
    """Raw content of a file that `locate` found, checked against its MD5.

    A file that passed is not checked again until its size or time changes. What had to be unpacked is kept in raw
    form in the user's cache. Raises CorruptData.
    """
    stamp = _stamp(file, path)
    try:
        if path.suffix == ".zip" and file_set.unpack is not None:
            content = file_set.unpack(path)
        elif path.suffix == ".gz":
            content = gunzip(path.read_bytes(), file.size, path)
        else:
            content = path.read_bytes()
        if use_stamp and stamp.is_file() and len(content) == file.size:
            return content
        check_content(file, content, path)
    except CorruptData as error:
        remedy = f"remove it and run `fedhedge data fetch {file_set.folder}`"
        raise CorruptData(f"{error}; {remedy}") from None
    try:
        if path.suffix == ".zip":
            files.write_bytes(_unpacked(file_set, file), content)
        else:
            files.write_text(stamp, f"{path.absolute()}\n")
    except OSError:
        # Without a cache that can be written the check is simply made every time.
        pass
    return content


def check_content(file: DataFile, content: bytes, path: Path) -> None:
    """Raise CorruptData unless `content` is the published one."""
    if len(content) != file.size:
        raise CorruptData(f"{path}: {len(content)} bytes of content, expected {file.size}")
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if found != file.md5:
        raise CorruptData(f"{path}: MD5 of the content is {found}, expected {file.md5}")


def gunzip(packed: bytes, size: int, path: Path) -> bytes:
    """Content of a gzip file, read to one byte past the expected size at most; CorruptData when it is broken."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
            return stream.read(size + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CorruptData(f"{path}: not a whole gzip file ({error})") from None


def _unpacked(file_set: FileSet, file: DataFile) -> Path:
    return user_cache() / "unpacked" / file_set.folder / file.name


def _stamp(file: DataFile, path: Path) -> Path:
    status = path.stat()
    key = f"{path.absolute()}\n{status.st_size}\n{status.st_mtime_ns}\n{file.md5}"
    return user_cache() / "checked" / hashlib.sha256(key.encode()).hexdigest()

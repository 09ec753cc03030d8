"""Where files are looked for, and how their content is checked."""

import gzip
import os
from pathlib import Path

import pytest
from published import data_file

from fedhedge.data import CorruptData, MissingData, resolve
from fedhedge.data.resolve import FileSet, locate, locate_all, read

CONTENT = b"published content"
FILE = data_file("numbers", CONTENT)
FILES = FileSet("set", (FILE,), ())


def put(folder: Path, name: str = "numbers", content: bytes = CONTENT) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return folder / name


def test_the_argument_goes_before_the_variable_and_the_variable_before_the_cache(
    monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    monkeypatch.delenv("FEDHEDGE_DATA", raising=False)
    assert resolve.data_root() == cache / "data"
    monkeypatch.setenv("FEDHEDGE_DATA", "from-variable")
    assert resolve.data_root() == Path("from-variable")
    assert resolve.data_root("from-argument") == Path("from-argument")


def test_raw_goes_before_packed_and_the_root_before_system_folders(tmp_path: Path) -> None:
    files = FileSet("set", (FILE,), (), elsewhere=(tmp_path / "system",))
    system = put(tmp_path / "system", "numbers.gz", gzip.compress(CONTENT, mtime=0))
    assert locate(files, FILE, tmp_path) == system
    assert read(files, FILE, system) == CONTENT
    packed = put(tmp_path / "set", "numbers.gz", gzip.compress(CONTENT, mtime=0))
    assert locate(files, FILE, tmp_path) == packed
    raw = put(tmp_path / "set")
    assert locate(files, FILE, tmp_path) == raw


def test_missing_files_are_named(tmp_path: Path) -> None:
    put(tmp_path / "set")
    files = FileSet("set", (FILE, data_file("letters", b"abc")), ())
    with pytest.raises(MissingData, match=r"set: letters not found in .*set; .*`fedhedge data fetch set`"):
        locate_all(files, tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("numbers", b"published CONTENT", "numbers: MD5 of the content is .*, expected .*; remove it and run"),
        ("numbers", b"published", "numbers: 9 bytes of content, expected 17"),
        ("numbers.gz", gzip.compress(CONTENT + b"more", mtime=0), "numbers.gz: 18 bytes of content, expected 17"),
        ("numbers.gz", gzip.compress(CONTENT, mtime=0)[:-9], "numbers.gz: not a whole gzip file"),
        ("numbers.gz", b"not gzip", "numbers.gz: not a whole gzip file"),
        ("numbers.gz", gzip.compress(CONTENT, mtime=0)[:10] + b"\x07" * 20, "numbers.gz: not a whole gzip file"),
    ],
)
def test_wrong_content_is_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = put(tmp_path / "set", name, content)
    with pytest.raises(CorruptData, match=message):
        read(FILES, FILE, path)


def test_the_checksum_is_computed_once(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path / "set")
    checks = []
    check = resolve.check_content
    monkeypatch.setattr(resolve, "check_content", lambda *arguments: (checks.append(arguments), check(*arguments)))
    assert read(FILES, FILE, path) == read(FILES, FILE, path) == CONTENT
    assert len(checks) == 1
    assert [entry.name for entry in path.parent.iterdir()] == ["numbers"]
    assert len(list((cache / "checked").iterdir())) == 1
    read(FILES, FILE, path, use_stamp=False)
    assert len(checks) == 2


def test_a_file_that_changed_is_checked_again(tmp_path: Path) -> None:
    path = put(tmp_path / "set")
    read(FILES, FILE, path)
    path.write_bytes(CONTENT[::-1])
    os.utime(path, ns=(0, 0))
    with pytest.raises(CorruptData, match="MD5"):
        read(FILES, FILE, path)


def test_a_cache_that_cannot_be_written_is_no_obstacle(tmp_path: Path, cache: Path) -> None:
    cache.write_text("a file where the folder should be")
    path = put(tmp_path / "set")
    assert read(FILES, FILE, path) == CONTENT

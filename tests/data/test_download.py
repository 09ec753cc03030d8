"""Downloads from a server on the loopback interface."""

import gzip
import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from published import data_file

from fedhedge.data.download import DownloadFailed, fetch_files
from fedhedge.data.resolve import Archive, FileSet, locate, read

CONTENT = bytes(range(256)) * 40
OTHER = b"other content"
FILE = data_file("numbers", CONTENT)


class Server:
    """Pages by path, and the paths asked for."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.cut: set[str] = set()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append(self.path)
                page = server.pages.get(self.path)
                self.send_response(404 if page is None else 200)
                self.send_header("Content-Length", str(len(page or b"")))
                self.end_headers()
                if page is not None:
                    self.wfile.write(page[:-5] if self.path in server.cut else page)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Server()
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.http.shutdown()
    server.http.server_close()
    thread.join()


def files(server: Server, *folders: str) -> FileSet:
    return FileSet("set", (FILE,), tuple(f"{server.url}/{folder}/" for folder in folders))


def test_a_file_is_fetched_once_and_read(tmp_path: Path, server: Server) -> None:
    server.pages["/a/numbers.gz"] = gzip.compress(CONTENT)
    file_set = files(server, "a")
    path = tmp_path / "set" / "numbers.gz"
    assert fetch_files(file_set, tmp_path) == [path]
    assert locate(file_set, FILE, tmp_path) == path
    assert read(file_set, FILE, path) == CONTENT
    assert fetch_files(file_set, tmp_path) == []
    assert server.asked == ["/a/numbers.gz"]


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (None, "404"),
        (gzip.compress(CONTENT[::-1]), "MD5 of the content is"),
        (gzip.compress(CONTENT[1:]), "10239 bytes of content, expected 10240"),
        (gzip.compress(CONTENT)[:-9], "not a whole gzip file"),
        (b"<html>not here</html>", "not a whole gzip file"),
        (bytes(len(CONTENT) + 70_000), "more than the 75776 bytes"),
    ],
)
def test_wrong_pages_are_refused_and_leave_nothing(
    tmp_path: Path, server: Server, page: bytes | None, reason: str
) -> None:
    if page is not None:
        server.pages["/a/numbers.gz"] = page
    with pytest.raises(DownloadFailed, match=reason) as error:
        fetch_files(files(server, "a"), tmp_path)
    assert f"{server.url}/a/numbers.gz" in str(error.value)
    assert str(tmp_path / "set") in str(error.value)
    assert list(tmp_path.rglob("*numbers*")) == []


def test_a_connection_that_ends_early_is_refused(tmp_path: Path, server: Server) -> None:
    server.pages["/a/numbers.gz"] = gzip.compress(CONTENT)
    server.cut.add("/a/numbers.gz")
    with pytest.raises(DownloadFailed, match=r"connection ended|IncompleteRead"):
        fetch_files(files(server, "a"), tmp_path)


def test_the_next_address_is_tried(tmp_path: Path, server: Server) -> None:
    server.pages["/a/numbers.gz"] = gzip.compress(OTHER)
    server.pages["/b/numbers.gz"] = gzip.compress(CONTENT)
    assert len(fetch_files(files(server, "a", "b"), tmp_path)) == 1
    assert server.asked == ["/a/numbers.gz", "/b/numbers.gz"]


def archive(**contents: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as target:
        for name, content in contents.items():
            member = tarfile.TarInfo(f"../{name}")
            member.size = len(content)
            target.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def archived(server: Server, page: bytes, sha256: str | None = None) -> FileSet:
    server.pages["/a/all.tar.gz"] = page
    entry = Archive("all.tar.gz", 1_000_000, sha256 or hashlib.sha256(page).hexdigest())
    wanted = (FILE, data_file("letters", OTHER))
    return FileSet("set", wanted, (f"{server.url}/a/",), archive=entry)


def test_an_archive_gives_its_files_by_name(tmp_path: Path, server: Server) -> None:
    file_set = archived(server, archive(numbers=CONTENT, letters=OTHER, more=b"not wanted"))
    assert len(fetch_files(file_set, tmp_path / "root")) == 2
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {"root/set/numbers", "root/set/letters"}
    assert fetch_files(file_set, tmp_path / "root") == []
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("page", "sha256", "reason"),
    [
        (archive(numbers=CONTENT, letters=OTHER), "0" * 64, "SHA-256 is"),
        (archive(numbers=CONTENT[::-1], letters=OTHER), None, "MD5 of the content"),
        (archive(letters=OTHER), None, "holds 1 of the 2 files"),
    ],
)
def test_wrong_archives_are_refused(
    tmp_path: Path, server: Server, page: bytes, sha256: str | None, reason: str
) -> None:
    with pytest.raises(DownloadFailed, match=reason):
        fetch_files(archived(server, page, sha256), tmp_path)
    assert not (tmp_path / "set" / "numbers").exists()

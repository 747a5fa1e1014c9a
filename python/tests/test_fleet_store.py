"""A lake in an object store: the requests that Arrow sends to an S3 server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest
from fleets import write

import whyslow
from whyslow import fleet

BUCKET = "bucket"


class Server(ThreadingHTTPServer):
    """The subset of S3 needed for reading a folder, whose first component is the bucket."""

    def __init__(self, folder: Path):
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = folder
        self.requests: list[tuple[str, str]] = []
        #: Status and S3 error code for requests whose command and path contain `fails_for`.
        self.fails: tuple[int, str] | None = None
        self.fails_for: tuple[str, str] = ("", "")


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self.server.requests.append(("PUT", self.path))
        self._send(405, b"")

    def _answer(self) -> None:
        parts = urlsplit(self.path)
        self.server.requests.append((self.command, self.path))
        command, part = self.server.fails_for
        if self.server.fails is not None and command in self.command and part in self.path:
            status, code = self.server.fails
            self._send(status, f"<Error><Code>{code}</Code></Error>".encode())
            return
        query = parse_qs(parts.query)
        if not f"{parts.path}/".startswith(f"/{BUCKET}/"):
            self._send(404, b"<Error><Code>NoSuchBucket</Code></Error>")
            return
        if "list-type" in query:
            self._send(200, self._listing(query))
            return
        name = unquote(parts.path).removeprefix(f"/{BUCKET}").lstrip("/")
        file = self.server.folder / name
        if not name:
            self._send(200, b"")
        elif not file.is_file():
            self._send(404, b"<Error><Code>NoSuchKey</Code></Error>")
        else:
            self._send(*self._part(file.read_bytes()))

    def _part(self, content: bytes) -> tuple[int, bytes]:
        wanted = self.headers.get("Range")
        if wanted is None:
            return 200, content
        begin, end = wanted.removeprefix("bytes=").split("-")
        return 206, content[int(begin) : int(end) + 1]

    def _listing(self, query: dict[str, list[str]]) -> bytes:
        prefix = query.get("prefix", [""])[0]
        by_folder = "delimiter" in query
        folder = self.server.folder
        names = sorted(
            str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()
        )
        files, folders = [], []
        for name in names:
            if not name.startswith(prefix):
                continue
            rest = name[len(prefix) :]
            if by_folder and "/" in rest:
                folders.append(prefix + rest.split("/")[0] + "/")
            else:
                files.append(name)
        rows = [
            f"<Contents><Key>{escape(name)}</Key>"
            f"<Size>{(folder / name).stat().st_size}</Size>"
            "<LastModified>2026-03-01T12:00:00.000Z</LastModified></Contents>"
            for name in files
        ]
        rows += [
            f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
            for name in sorted(set(folders))
        ]
        text = (
            f"<ListBucketResult><IsTruncated>false</IsTruncated>{''.join(rows)}</ListBucketResult>"
        )
        return text.encode()

    def _send(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Last-Modified", "Sun, 01 Mar 2026 12:00:00 GMT")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """No log: the tests inspect `requests`."""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    write(tmp_path / "lake")
    server = Server(tmp_path)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    yield server
    server.shutdown()
    server.server_close()


def test_a_lake_in_a_bucket_is_that_of_its_folder(server: Server, tmp_path: Path) -> None:
    there = fleet.open(f"s3://{BUCKET}/lake").query("percentiles")
    here = fleet.open(str(tmp_path / "lake")).query("percentiles")
    assert there.table.equals(here.table)
    assert there.facts["bytes_read"] == here.facts["bytes_read"]
    assert {command for command, _ in server.requests} == {"GET", "HEAD"}
    reads = [path for command, path in server.requests if command == "GET" and ".parquet" in path]
    # Each file is read once, in one request.
    assert len(reads) == len(set(reads)) == there.facts["files"] - 1
    server.requests.clear()
    fleet.open(f"s3://{BUCKET}/lake", hosts="web-07", window=None).query("verdicts")
    files = {path for _, path in server.requests if ".parquet" in path}
    assert files
    assert all("web-07" in path for path in files)


@pytest.mark.parametrize(
    ("status", "code", "where", "message", "hint"),
    [
        (403, "AccessDenied", ("", ""), "failed to read", "AWS_ACCESS_KEY_ID"),
        (403, "InvalidAccessKeyId", ("GET", "/rollup/"), "failed to read", "AWS_ACCESS_KEY_ID"),
        (503, "SlowDown", ("", ""), "failed to read", "did not respond: retry"),
        (503, "SlowDown", ("GET", "/rollup/"), "failed to read", "did not respond: retry"),
        (404, "NoSuchKey", ("GET", "/rollup/"), "is missing, although", "retry if"),
        (404, "NoSuchKey", ("HEAD", "/rollup/"), "is missing, although", "retry if"),
    ],
)
def test_what_a_store_does_not_give_is_an_error_with_what_helps(
    server: Server, status: int, code: str, where: tuple[str, str], message: str, hint: str
) -> None:
    server.fails, server.fails_for = (status, code), where
    with pytest.raises(whyslow.LakeError, match=message) as caught:
        fleet.open(f"s3://{BUCKET}/lake").query("percentiles")
    assert hint in str(caught.value.hint)
    assert ("AWS_ACCESS_KEY_ID" in str(caught.value.hint)) == (status == 403)


def test_a_store_that_is_not_there_is_an_error_with_what_helps(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(whyslow.LakeError, match="failed to read") as caught:
        fleet.open(f"s3://{BUCKET}/lake")
    assert "did not respond" in str(caught.value.hint)
    assert "AWS_ACCESS_KEY_ID" not in str(caught.value.hint)


def test_a_bucket_that_does_not_exist_is_an_error_of_its_own(server: Server) -> None:
    with pytest.raises(whyslow.LakeError, match="does not exist") as caught:
        fleet.open("s3://other/lake")
    assert caught.value.causes == ("there is no bucket `other`",)
    with pytest.raises(whyslow.LakeError, match="no recordings in the lake") as caught:
        fleet.open(f"s3://{BUCKET}/elsewhere")
    assert "whyslow fleet push" in str(caught.value.hint)

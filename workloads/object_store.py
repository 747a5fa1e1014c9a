#!/usr/bin/env python3
"""An object store on loopback with the S3 operations that whyslow uses, and injected faults.

    object_store.py [--port 0] [--bucket lake] [--page 1000] [--seed 1] [--fault NAME=RATE]…

Prints its address on one line, and serves until its standard input ends. Objects are in memory.
Signatures are not checked. Tests compare a client's view with the actual objects.

Faults, each with its probability per request (at most one applies to a request):
  error      responds with 500 or 503 and does nothing
  lost       executes the request, but closes the connection without a response
  stall      waits for --stall seconds before executing the request, so that later ones overtake it
  cut_write  stores half of an object, and reports success
  cut_read   sends half of an object, then closes the connection
  shuffle    returns a list in random order

Control requests, without faults:
  GET /_state      name, size and SHA-256 of each object, and requests by method
  POST /_faults    {"error": 0.2, …}: changes the probabilities
  POST /_forget    removes the named object
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import threading
import time
from collections import Counter
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

FAULTS = ("error", "lost", "stall", "cut_write", "cut_read", "shuffle")
NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'


class Store:
    """Objects, multipart uploads, and the random generator."""

    def __init__(self, options: argparse.Namespace):
        self.bucket = options.bucket
        self.page = options.page
        self.stall = options.stall
        self.lock = threading.Lock()
        self.objects: dict[str, tuple[bytes, float]] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.requests: Counter[str] = Counter()
        self.read = 0
        self.rates = dict(options.fault)
        self.dice = random.Random(options.seed)

    def fault(self, possible: tuple[str, ...]) -> str | None:
        """Draws the fault of a request."""
        with self.lock:
            for name in possible:
                if self.dice.random() < self.rates.get(name, 0.0):
                    return name
        return None

    def state(self) -> dict:
        with self.lock:
            objects = {
                name: {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
                for name, (content, _) in sorted(self.objects.items())
            }
            return {
                "objects": objects,
                "uploads": len(self.uploads),
                "requests": dict(self.requests),
                "bytes_read": self.read,
            }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Send a response in one segment: a second one would wait for the first one's acknowledgement.
    wbufsize = 1 << 16
    disable_nagle_algorithm = True
    store: Store

    def log_message(self, *_: object) -> None:
        pass

    # Requests

    def do_GET(self) -> None:
        if self.path == "/_state":
            self.answer(200, json.dumps(self.store.state()).encode(), "application/json")
            return
        key, query = self.target()
        if key is None:
            return
        if not key:
            self.with_faults(
                ("error", "lost", "stall", "shuffle"), lambda fault: self.list(query, fault)
            )
        else:
            self.with_faults(
                ("error", "lost", "stall", "cut_read"), lambda fault: self.get(key, fault)
            )

    def do_HEAD(self) -> None:
        key, _ = self.target()
        if key is not None:
            self.with_faults(("error", "lost", "stall"), lambda _: self.get(key, None))

    def do_PUT(self) -> None:
        key, query = self.target()
        if key is None:
            return
        body = self.body()
        faults = ("error", "lost", "stall", "cut_write")
        self.with_faults(faults, lambda fault: self.put(key, query, body, fault))

    def do_DELETE(self) -> None:
        key, query = self.target()
        if key is not None:
            self.with_faults(("error", "lost", "stall"), lambda _: self.delete(key, query))

    def do_POST(self) -> None:
        body = self.body()
        if self.path == "/_faults":
            with self.store.lock:
                self.store.rates = json.loads(body)
            self.answer(204)
            return
        if self.path == "/_forget":
            with self.store.lock:
                self.store.objects.pop(body.decode(), None)
            self.answer(204)
            return
        key, query = self.target()
        if key is not None:
            self.with_faults(("error", "lost", "stall"), lambda _: self.upload(key, query))

    # Operations: each returns a response as (status, body, headers)

    def list(self, query: dict[str, str], fault: str | None) -> tuple:
        prefix, after = query.get("prefix", ""), query.get("continuation-token", "")
        after = max(after, query.get("start-after", ""))
        delimiter = query.get("delimiter", "")
        with self.store.lock:
            names = sorted(name for name in self.store.objects if name.startswith(prefix))
            entries, folders = [], []
            for name in names:
                rest = name[len(prefix) :]
                if delimiter and delimiter in rest:
                    folder = prefix + rest[: rest.index(delimiter) + 1]
                    if folder not in folders:
                        folders.append(folder)
                elif name > after:
                    entries.append((name, *self.store.objects[name]))
        is_truncated = len(entries) > self.store.page
        entries = entries[: self.store.page]
        last = entries[-1][0] if entries else ""
        if fault == "shuffle":
            self.store.dice.shuffle(entries)
        contents = "".join(
            f"<Contents><Key>{escape(name)}</Key><Size>{len(content)}</Size>"
            f"<LastModified>{stamp(at)}</LastModified><ETag>&quot;{tag(content)}&quot;</ETag></Contents>"
            for name, content, at in entries
        )
        contents += "".join(
            f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
            for folder in folders
        )
        token = (
            f"<NextContinuationToken>{escape(last)}</NextContinuationToken>" if is_truncated else ""
        )
        text = (
            f"<ListBucketResult {NAMESPACE}><Name>{self.store.bucket}</Name>"
            f"<IsTruncated>{str(is_truncated).lower()}</IsTruncated>{token}{contents}</ListBucketResult>"
        )
        return 200, text.encode(), {"Content-Type": "application/xml"}

    def get(self, key: str, fault: str | None) -> tuple:
        with self.store.lock:
            found = self.store.objects.get(key)
        if found is None:
            return error(404, "NoSuchKey")
        content, at = found
        headers = {"ETag": f'"{tag(content)}"', "Last-Modified": formatdate(at, usegmt=True)}
        status, whole = 200, len(content)
        requested = self.headers.get("Range", "")
        if requested.startswith("bytes=") and self.command == "GET":
            first, _, last = requested.removeprefix("bytes=").partition("-")
            begin = int(first) if first else max(whole - int(last), 0)
            end = min(int(last) + 1, whole) if first and last else whole
            if begin >= whole:
                return error(416, "InvalidRange")
            content, status = content[begin:end], 206
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{whole}"
        if self.command == "GET":
            with self.store.lock:
                self.store.read += len(content)
        headers["Content-Type"] = "application/octet-stream"
        if fault == "cut_read":
            headers["Content-Length"] = str(len(content))
            content = content[: len(content) // 2]
            self.close_connection = True
        return status, content, headers

    def put(self, key: str, query: dict[str, str], body: bytes, fault: str | None) -> tuple:
        stored = body[: len(body) // 2] if fault == "cut_write" else body
        with self.store.lock:
            if "uploadId" in query:
                parts = self.store.uploads.get(query["uploadId"])
                if parts is None:
                    return error(404, "NoSuchUpload")
                parts[int(query["partNumber"])] = stored
            else:
                if self.headers.get("If-None-Match") == "*" and key in self.store.objects:
                    return error(412, "PreconditionFailed")
                self.store.objects[key] = (stored, time.time())
        return 200, b"", {"ETag": f'"{tag(body)}"'}

    def delete(self, key: str, query: dict[str, str]) -> tuple:
        with self.store.lock:
            if "uploadId" in query:
                self.store.uploads.pop(query["uploadId"], None)
            else:
                self.store.objects.pop(key, None)
        return 204, b"", {}

    def upload(self, key: str, query: dict[str, str]) -> tuple:
        with self.store.lock:
            if "uploads" in query:
                name = f"{self.store.dice.getrandbits(64):016x}"
                self.store.uploads[name] = {}
                text = (
                    f"<InitiateMultipartUploadResult {NAMESPACE}>"
                    f"<Bucket>{self.store.bucket}</Bucket>"
                    f"<Key>{escape(key)}</Key><UploadId>{name}</UploadId></InitiateMultipartUploadResult>"
                )
                return 200, text.encode(), {"Content-Type": "application/xml"}
            parts = self.store.uploads.pop(query.get("uploadId", ""), None)
            if parts is None:
                return error(404, "NoSuchUpload")
            content = b"".join(parts[number] for number in sorted(parts))
            self.store.objects[key] = (content, time.time())
        text = (
            f"<CompleteMultipartUploadResult {NAMESPACE}><Location>here</Location>"
            f"<Bucket>{self.store.bucket}</Bucket><Key>{escape(key)}</Key>"
            f"<ETag>&quot;{tag(content)}&quot;</ETag></CompleteMultipartUploadResult>"
        )
        return 200, text.encode(), {"Content-Type": "application/xml"}

    # Dispatch and responses

    def with_faults(self, possible: tuple[str, ...], do) -> None:
        fault = self.store.fault(possible)
        with self.store.lock:
            self.store.requests[self.command] += 1
        if fault == "error":
            self.respond(
                *error(*self.store.dice.choice([(500, "InternalError"), (503, "SlowDown")]))
            )
            return
        if fault == "stall":
            time.sleep(self.store.stall)
        answer = do(fault)
        if fault == "lost":
            self.close_connection = True
            return
        self.respond(*answer)

    def target(self) -> tuple[str | None, dict[str, str]]:
        """The object's key, empty for the bucket; None if an error response was sent."""
        parts = urlsplit(self.path)
        query = {
            name: values[0]
            for name, values in parse_qs(parts.query, keep_blank_values=True).items()
        }
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        if bucket != self.store.bucket:
            self.respond(*error(404, "NoSuchBucket"))
            return None, query
        return key, query

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def respond(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        try:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if "Content-Length" not in headers:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)
        except OSError:
            # The client closed the connection.
            self.close_connection = True

    def answer(self, status: int, body: bytes = b"", kind: str = "text/plain") -> None:
        self.respond(status, body, {"Content-Type": kind})


def error(status: int, code: str) -> tuple:
    text = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>"
    return status, text.encode(), {"Content-Type": "application/xml"}


def tag(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


def stamp(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(at))


def rate(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    if name not in FAULTS:
        raise argparse.ArgumentTypeError(f"unknown fault `{name}`; faults are {', '.join(FAULTS)}")
    return name, float(value)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--bucket", default="lake")
    parser.add_argument("--page", type=int, default=1000, help="maximum entries of a list response")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stall", type=float, default=2.0, help="delay of `stall` in seconds")
    parser.add_argument("--fault", type=rate, action="append", default=[], metavar="NAME=RATE")
    options = parser.parse_args()
    Handler.store = Store(options)
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    sys.stdin.read()
    server.shutdown()


if __name__ == "__main__":
    main()

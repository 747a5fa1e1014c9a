"""Counts the words of a text, with a file per word.

LOG gets the service's own measurements, a line of JSON per request: thread ids of the kernel, wall
clock times, the addresses of the connection, and the created files.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import threading
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from flask import Flask, g, jsonify, request

app = Flask(__name__)
LOG = os.open(os.environ["LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
SCRATCH = Path(os.environ["SCRATCH"])
WORDS = 1000
WORKERS = 4
PR_SET_NAME = 15


def name_thread() -> None:
    ctypes.CDLL(None).prctl(PR_SET_NAME, b"counter", 0, 0, 0)


counters = ThreadPoolExecutor(WORKERS, initializer=name_thread)


@app.before_request
def begin() -> None:
    g.begin, g.files, g.bytes, g.counter = time.time_ns(), 0, 0, None


@app.teardown_request
def log(_: object) -> None:
    """Writes each line with one call, so that lines of different threads do not mix."""
    connection = request.environ["gunicorn.socket"]
    parts = request.headers.get("traceparent", "").split("-")
    entry: dict[str, Any] = {"trace_id": parts[1] if len(parts) == 4 else None}
    entry |= {"endpoint": request.path, "pid": os.getpid(), "tid": threading.get_native_id()}
    entry |= {"begin_ns": g.begin, "end_ns": time.time_ns()}
    entry |= {"local": address(connection.getsockname()), "peer": address(connection.getpeername())}
    entry |= {"counter_tid": g.counter, "files": g.files, "bytes": g.bytes}
    os.write(LOG, json.dumps(entry).encode() + b"\n")


def address(name: tuple[str, int]) -> str:
    return f"{name[0]}:{name[1]}"


def count(words: list[str]) -> tuple[int, int, Counter[str]]:
    """Writes each word to its own file, and reads it back."""
    folder = SCRATCH / str(uuid.uuid4())
    folder.mkdir()
    total = 0
    for number, word in enumerate(words):
        total += (folder / f"{number}.txt").write_text(word * 101)
    found = Counter(
        (folder / f"{number}.txt").read_text()[: len(word)] for number, word in enumerate(words)
    )
    shutil.rmtree(folder)
    return threading.get_native_id(), total, found


def counted() -> Counter[str]:
    text = int(request.args.get("text", 3))
    words = [f"word{number % (97 * text)}" for number in range(WORDS)]
    g.counter, g.bytes, found = counters.submit(count, words).result()
    g.files = len(words)
    return found


@app.get("/health")
def health() -> str:
    return "well"


@app.get("/count")
def words() -> Any:
    return jsonify(counted().most_common(10))


@app.get("/length")
def length() -> Any:
    return jsonify(sum(counted().values()))

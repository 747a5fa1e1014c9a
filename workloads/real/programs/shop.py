"""Pages of a shop, for gunicorn: cheap ones, expensive ones, and one that needs a database.

/report sleeps as if it waited for another service, /sum computes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Any, Callable
from urllib.parse import parse_qs

_database: list[Any] = []


def order() -> bytes:
    """Changes a row, on a connection that the worker keeps."""
    if not _database:
        import psycopg2

        place = {"host": "127.0.0.1", "port": os.environ["DATABASE_PORT"], "user": "shop"}
        connection = psycopg2.connect(**place, dbname="postgres")
        connection.autocommit = True
        _database.append(connection.cursor())
    _database[0].execute("UPDATE stock SET count = count - 1 WHERE id = 1")
    return b"ordered\n"


def compute(ms: float) -> bytes:
    """Uses CPU time, not wall clock time: a quota makes it longer."""
    end = time.thread_time() + ms / 1000
    while time.thread_time() < end:
        sum(range(2000))
    return b"computed\n"


def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    ms = float(parse_qs(environ["QUERY_STRING"]).get("ms", ["0"])[0])
    path = environ["PATH_INFO"]
    if path == "/order":
        body = order()
    elif path == "/report":
        time.sleep(ms / 1000)
        body = b"reported\n"
    elif path == "/sum":
        body = compute(ms)
    else:
        body = b"hello\n"
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]

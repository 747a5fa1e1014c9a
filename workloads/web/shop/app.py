"""A shop: each page except its health check connects to the database by name.

LOG gets the shop's own measurements, a line of JSON per request: thread ids of the kernel, wall
clock times, the addresses of the connection.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg2
from flask import Flask, g, jsonify, request

app = Flask(__name__)
LOG = os.open(os.environ["LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
DATABASE = f"host=db.internal port={os.environ['DATABASE_PORT']} user=shop dbname=postgres"


@app.before_request
def begin() -> None:
    g.begin = time.time_ns()


@app.teardown_request
def log(_: object) -> None:
    """Writes each line with one call, so that lines of different processes do not mix."""
    connection = request.environ["gunicorn.socket"]
    parts = request.headers.get("traceparent", "").split("-")
    entry: dict[str, Any] = {"trace_id": parts[1] if len(parts) == 4 else None}
    entry |= {"endpoint": request.path, "pid": os.getpid(), "tid": threading.get_native_id()}
    entry |= {"begin_ns": g.begin, "end_ns": time.time_ns()}
    entry |= {"local": address(connection.getsockname()), "peer": address(connection.getpeername())}
    entry |= {"connect_ns": g.get("connect_ns"), "database_port": g.get("database_port")}
    os.write(LOG, json.dumps(entry).encode() + b"\n")


def address(name: tuple[str, int]) -> str:
    return f"{name[0]}:{name[1]}"


@contextmanager
def database() -> Iterator[Any]:
    begin = time.time_ns()
    connection = psycopg2.connect(DATABASE)
    g.connect_ns = time.time_ns() - begin
    try:
        with connection.cursor() as cursor:
            yield cursor
    finally:
        connection.close()


def query(sql: str, *words: Any) -> Any:
    with database() as cursor:
        cursor.execute(sql, words)
        return jsonify(cursor.fetchall())


@app.get("/health")
def health() -> str:
    return "well"


@app.get("/")
def front() -> Any:
    return query("SELECT id, title FROM item ORDER BY id DESC LIMIT 20")


@app.get("/items")
def items() -> Any:
    return query("SELECT id, title, price FROM item WHERE price < %s", 700)


@app.get("/item")
def item() -> Any:
    return query("SELECT id, title, price FROM item WHERE id = %s", int(request.args.get("id", 1)))


@app.get("/orders")
def orders() -> Any:
    return query(
        "SELECT item.title, count(*) FROM orders JOIN item ON item.id = orders.item GROUP BY 1"
    )


@app.get("/customers")
def customers() -> Any:
    return query("SELECT customer, count(*) FROM orders GROUP BY 1 ORDER BY 2 DESC LIMIT 10")


@app.get("/search")
def search() -> Any:
    return query("SELECT id, title FROM item WHERE title LIKE %s", f"%{request.args.get('q', 7)}%")


@app.get("/basket")
def basket() -> Any:
    return query("SELECT sum(item.price) FROM orders JOIN item ON item.id = orders.item")

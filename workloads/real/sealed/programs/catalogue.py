"""A page of a shop that reads one row from PostgreSQL, for gunicorn."""

from __future__ import annotations

import os
from typing import Any, Callable

import psycopg2

sessions: list[Any] = []


def app(environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
    if not sessions:
        session = psycopg2.connect(
            host="127.0.0.1", port=os.environ["SHOP_DATABASE"], user="shop", dbname="postgres"
        )
        session.autocommit = True
        sessions.append(session)
    with sessions[0].cursor() as cursor:
        cursor.execute("SELECT state FROM orders WHERE id = 7")
        body = str(cursor.fetchone()[0]).encode()
    start("200 OK", [("Content-Length", str(len(body)))])
    return [body]

"""Clients of SQL databases: one keeps a row locked in an idle transaction, another one needs it."""

from __future__ import annotations

import time
from typing import Any, Callable

from faults.plan import myself, repeat
from real.scenario import WaitingPlan

TABLE = (
    "CREATE TABLE stock (id int PRIMARY KEY, count int);"
    "INSERT INTO stock VALUES (1, 100), (2, 100), (3, 100);"
)
CHANGE = "UPDATE stock SET count = count - 1 WHERE id = 1"

Connect = Callable[[], Any]


def postgres(port: int) -> Any:
    import psycopg2

    connection = psycopg2.connect(host="127.0.0.1", port=port, user="shop", dbname="postgres")
    connection.autocommit = True
    return connection


def change(plan: WaitingPlan, connect: Connect, pause: float) -> dict[str, Any]:
    """The victim: changes the row, each time in a transaction of its own."""
    cursor = connect().cursor()
    cursor.execute(CHANGE)
    plan.wait()
    return repeat(plan, lambda: cursor.execute(CHANGE), pause)


def hold(
    plan: WaitingPlan, connect: Connect, thread: str, hold_s: float, gap_s: float
) -> dict[str, Any]:
    """The culprit: changes the row, does something else, and only then commits.

    `thread` is the query for the id of its thread or process in the server.
    """
    cursor = connect().cursor()
    cursor.execute(thread)
    served_by = int(cursor.fetchone()[0])
    plan.wait()
    spans = []
    while not plan.is_over():
        if plan.is_on():
            cursor.execute("BEGIN")
            cursor.execute(CHANGE)
            begin = time.monotonic_ns()
            time.sleep(hold_s)
            cursor.execute("COMMIT")
            spans.append((begin, time.monotonic_ns()))
        time.sleep(gap_s)
    return {**myself(), "spans": spans, "served_by": served_by}

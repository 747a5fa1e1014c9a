"""HTTP clients: the victim fetches a page every few milliseconds, others keep the server busy."""

from __future__ import annotations

import http.client
import threading
import time
from pathlib import Path
from typing import Any

from faults.plan import MS, Span, myself, repeat
from real.scenario import WaitingPlan

TIMEOUT_SECONDS = 10


def connect(port: int, host: str = "127.0.0.1") -> http.client.HTTPConnection:
    return http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)


def get(connection: http.client.HTTPConnection, path: str) -> int:
    """Fetches a page; its status. Connects again if the server has closed the connection."""
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
    except (OSError, http.client.HTTPException):
        connection.close()
        return 0
    return response.status


def fetch(
    plan: WaitingPlan, port: int, path: str, pause: float, host: str = "127.0.0.1"
) -> dict[str, Any]:
    """The victim, on one connection that is older than the recording if it starts in `setup`."""
    connection = connect(port, host)
    get(connection, path)
    plan.wait()
    return repeat(plan, lambda: get(connection, path), pause)


def fetch_anew(
    plan: WaitingPlan, port: int, path: str, pause: float, host: str = "127.0.0.1"
) -> dict[str, Any]:
    """The victim, on a new connection for each page."""
    plan.wait()

    def once() -> None:
        connection = connect(port, host)
        get(connection, path)
        connection.close()

    return repeat(plan, once, pause)


def press(plan: WaitingPlan, port: int, path: str, pause: float, count: int = 1) -> dict[str, Any]:
    """The culprit's client: fetches an expensive page while the fault is on, `count` at a time."""
    spans: list[Span] = []

    def work() -> None:
        connection = connect(port)
        while not plan.is_over():
            if plan.is_on():
                begin = time.monotonic_ns()
                get(connection, path)
                spans.append((begin, time.monotonic_ns()))
                time.sleep(pause)
            else:
                time.sleep(0.01)

    plan.wait()
    others = [threading.Thread(target=work) for _ in range(1, count)]
    for other in others:
        other.start()
    work()
    for other in others:
        other.join()
    return {**myself(), "spans": spans}


def merged(spans: list[Span], gap_ns: int = 0) -> list[Span]:
    """Spans without overlaps, in order; those that are at most `gap_ns` apart are one."""
    found: list[list[int]] = []
    for begin, end in sorted(map(tuple, spans)):
        if found and begin <= found[-1][1] + gap_ns:
            found[-1][1] = max(found[-1][1], end)
        else:
            found.append([begin, end])
    return [(begin, end) for begin, end in found]


def held_by_all(clients: list[list[Span]], count: int) -> list[Span]:
    """Spans in which at least `count` of the requests were in progress: no worker was free."""
    edges = sorted(
        edge for spans in clients for begin, end in spans for edge in ((begin, 1), (end, -1))
    )
    found, running, since = [], 0, 0
    for at, step in edges:
        before, running = running, running + step
        if before < count <= running:
            since = at
        elif running < count <= before and at > since:
            found.append((since, at))
    return found


def spans_of(file: Path, least_ms: float = 0.0) -> list[Span]:
    """Spans that a program logged as `BEGIN END` in ns of CLOCK_MONOTONIC, a line each."""
    found = []
    for line in file.read_text().splitlines():
        words = line.split()
        if len(words) == 2 and int(words[1]) - int(words[0]) >= least_ms * MS:
            found.append((int(words[0]), int(words[1])))
    return found

"""Requests pages with several threads, each of which sends one request after another.

    client.py OUT THREADS EACH PAUSE_MS SEED new|keep URLS

THREADS may have several values, such as 1,5,20: one load after another with the same number of
requests. URLS has a weight and a URL per line, from which requests are drawn. OUT has the format
of `whyslow load`: a line about the load, then a line of JSON per request. This client measures less
and costs more than `whyslow load`, and is an independent reference for its tests.
"""

from __future__ import annotations

import http.client
import json
import random
import secrets
import socket
import sys
import threading
import time
import urllib.parse
from pathlib import Path
from typing import Any

TIMEOUT_SECONDS = 60


class Worker(threading.Thread):
    """One thread of the load, with one connection at a time."""

    connections = iter(range(1, 1 << 40))

    def __init__(self, number: int, urls: list[str], pause_ms: str, keep: str) -> None:
        super().__init__(name=f"client-{number}")
        self.number, self.urls, self.keep = number, urls, keep == "keep"
        self.pause_seconds = float(pause_ms) / 1000
        self.rows: list[dict[str, Any]] = []
        self._open: http.client.HTTPConnection | None = None
        self._number = 0

    def run(self) -> None:
        for url in self.urls:
            self.rows.append(self.request(url))
            time.sleep(self.pause_seconds)

    def request(self, url: str) -> dict[str, Any]:
        parts = urllib.parse.urlsplit(url)
        trace, span = secrets.token_hex(16), secrets.token_hex(8)
        row: dict[str, Any] = {"worker": self.number, "intended_ns": None}
        row |= {"start_ns": time.time_ns(), "connect_ns": None, "method": "GET", "url": url}
        row |= {"endpoint": parts.path, "status": None, "protocol": "HTTP/1.1"}
        row |= {"trace_id": trace, "span_id": span, "outcome": "ok", "error": None}
        begin = time.perf_counter_ns()
        try:
            self._exchange(parts, row, begin)
        except (OSError, http.client.HTTPException) as error:
            is_late = isinstance(error, TimeoutError)
            row |= {"outcome": "timeout" if is_late else "failed", "error": str(error)}
            self._close()
        row["total_ns"] = time.perf_counter_ns() - begin
        if not self.keep:
            self._close()
        return row

    def _exchange(self, parts: Any, row: dict[str, Any], at: int) -> None:
        row["reused"] = self._open is not None
        if self._open is None:
            assert parts.hostname is not None
            self._open = http.client.HTTPConnection(
                parts.hostname, parts.port, timeout=TIMEOUT_SECONDS
            )
            self._open.connect()
            self._open.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._number = next(Worker.connections)
            row["connect_ns"], at = since(at)
        row["connection"] = self._number
        row["local"], row["peer"] = (
            ":".join(map(str, side))
            for side in (self._open.sock.getsockname(), self._open.sock.getpeername())
        )
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        header = {"traceparent": f"00-{row['trace_id']}-{row['span_id']}-01"}
        self._open.request("GET", target, headers=header)
        row["send_ns"], at = since(at)
        answer = self._open.getresponse()
        row["wait_ns"], at = since(at)
        answer.read()
        row["receive_ns"], at = since(at)
        row["status"] = answer.status
        if answer.status >= 400:
            row["outcome"] = "error"
        if answer.will_close:
            self._close()

    def _close(self) -> None:
        if self._open:
            self._open.close()
        self._open = None


def since(begin: int) -> tuple[int, int]:
    now = time.perf_counter_ns()
    return now - begin, now


def main() -> None:
    out, threads, each, pause, seed, keep, file = sys.argv[1:]
    weighted = [line.split() for line in Path(file).read_text().splitlines()]
    weights, urls = [float(weight) for weight, _ in weighted], [url for _, url in weighted]
    dice = random.Random(int(seed))
    steps = [int(step) for step in threads.split(",")]
    begin, rows = time.time_ns(), []
    for step in steps:
        drawn = dice.choices(urls, weights, k=max(steps) * int(each))
        workers = [Worker(number, drawn[number::step], pause, keep) for number in range(step)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
            rows += worker.rows
    rows.sort(key=lambda row: row["start_ns"])
    head = {"whyslow_load": 1, "begin_ns": begin, "model": "closed", "threads": max(steps)}
    lines = [head, *({"seq": seq, **row} for seq, row in enumerate(rows))]
    Path(out).write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()

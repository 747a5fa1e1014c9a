"""Asks for pages with many threads at once, each of which makes one request after another.

    client.py OUT THREADS EACH PAUSE_MS SEED new|keep URLS

THREADS may be several, as 1,5,20: as many requests by each of these, one load after another. URLS
has a weight and a URL a line; what is asked for is drawn from them. OUT is what `whyslow load`
writes, too: a line about the load, then a line of JSON a request. It measures less
and takes more than that one does, and is for where that one is what is being tested.
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

PATIENCE_SECONDS = 60


class Worker(threading.Thread):
    """One thread of the load, with one connection at a time."""

    connections = iter(range(1, 1 << 40))

    def __init__(self, number: int, urls: list[str], pause_ms: str, keep: str) -> None:
        super().__init__(name=f"client-{number}")
        self.number, self.urls, self.keep = number, urls, keep == "keep"
        self.pause_seconds = float(pause_ms) / 1000
        self.told: list[dict[str, Any]] = []
        self._open: http.client.HTTPConnection | None = None
        self._number = 0

    def run(self) -> None:
        for url in self.urls:
            self.told.append(self.ask(url))
            time.sleep(self.pause_seconds)

    def ask(self, url: str) -> dict[str, Any]:
        parts = urllib.parse.urlsplit(url)
        trace, span = secrets.token_hex(16), secrets.token_hex(8)
        told: dict[str, Any] = {"worker": self.number, "intended_ns": None}
        told |= {"start_ns": time.time_ns(), "connect_ns": None, "method": "GET", "url": url}
        told |= {"endpoint": parts.path, "status": None, "protocol": "HTTP/1.1"}
        told |= {"trace_id": trace, "span_id": span, "outcome": "ok", "error": None}
        begin = time.perf_counter_ns()
        try:
            self._exchange(parts, told, begin)
        except (OSError, http.client.HTTPException) as error:
            is_late = isinstance(error, TimeoutError)
            told |= {"outcome": "timeout" if is_late else "failed", "error": str(error)}
            self._close()
        told["total_ns"] = time.perf_counter_ns() - begin
        if not self.keep:
            self._close()
        return told

    def _exchange(self, parts: Any, told: dict[str, Any], at: int) -> None:
        told["reused"] = self._open is not None
        if self._open is None:
            assert parts.hostname is not None
            self._open = http.client.HTTPConnection(
                parts.hostname, parts.port, timeout=PATIENCE_SECONDS
            )
            self._open.connect()
            self._open.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._number = next(Worker.connections)
            told["connect_ns"], at = since(at)
        told["connection"] = self._number
        told["local"], told["peer"] = (
            ":".join(map(str, side))
            for side in (self._open.sock.getsockname(), self._open.sock.getpeername())
        )
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        header = {"traceparent": f"00-{told['trace_id']}-{told['span_id']}-01"}
        self._open.request("GET", target, headers=header)
        told["send_ns"], at = since(at)
        answer = self._open.getresponse()
        told["wait_ns"], at = since(at)
        answer.read()
        told["receive_ns"], at = since(at)
        told["status"] = answer.status
        if answer.status >= 400:
            told["outcome"] = "error"
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
    begin, told = time.time_ns(), []
    for step in steps:
        asked = dice.choices(urls, weights, k=max(steps) * int(each))
        workers = [Worker(number, asked[number::step], pause, keep) for number in range(step)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
            told += worker.told
    told.sort(key=lambda row: row["start_ns"])
    head = {"whyslow_load": 1, "begin_ns": begin, "model": "closed", "threads": max(steps)}
    lines = [head, *({"seq": seq, **row} for seq, row in enumerate(told))]
    Path(out).write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()

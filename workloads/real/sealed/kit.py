"""Shared by the sealed scenarios: clients, servers that they wait for, and logs of programs."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, Callable, Union

import watchdog
from faults.plan import Span, myself, repeat
from lab import UnavailableError
from real.scenario import Scenario, WaitingPlan
from web.stack import START_SECONDS, free_port

PROGRAMS = Path(__file__).resolve().parent / "programs"
# A port of loopback, or the path of a unix socket.
Place = Union[int, str]
WAIT_SECONDS = 30


def dial(place: Place, host: str = "127.0.0.1") -> socket.socket:
    if isinstance(place, int):
        connection = socket.create_connection((host, place), WAIT_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection
    # Without a timeout: connect would fail at once if the queue is full.
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(place)
    return connection


class Web:
    """A client of HTTP/1.1 with one connection."""

    def __init__(self, place: Place, host: str = "127.0.0.1", headers: str = "") -> None:
        self._headers = f"Host: localhost\r\n{headers}"
        self.connection = dial(place, host)
        # A timeout would make each call poll first.
        self.connection.settimeout(None)

    def fetch(self, path: str, body: bytes = b"") -> bytes:
        method = "POST" if body else "GET"
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        head = f"{method} {path} HTTP/1.1\r\n{self._headers}{length}\r\n"
        self.connection.sendall(head.encode() + body)
        return self.answer()

    def answer(self) -> bytes:
        """The body of one response."""
        got = b""
        while b"\r\n\r\n" not in got:
            got += self._part()
        head, _, body = got.partition(b"\r\n\r\n")
        if b" 200 " not in head.partition(b"\r\n")[0]:
            raise RuntimeError(head.decode(errors="replace") + body.decode(errors="replace"))
        lines = head.lower().split(b"\r\n")
        lengths = [line[15:] for line in lines if line.startswith(b"content-length:")]
        if lengths:
            while len(body) < int(lengths[0]):
                body += self._part()
        elif b"transfer-encoding: chunked" in lines:
            while not body.endswith(b"0\r\n\r\n"):
                body += self._part()
        return body

    def _part(self) -> bytes:
        part = self.connection.recv(65536)
        if not part:
            raise RuntimeError("the server closed the connection")
        return part

    def close(self) -> None:
        self.connection.close()


def browse(plan: WaitingPlan, place: Place, path: str, pause: float = 0.008) -> dict[str, Any]:
    """A victim: requests a page again and again, on one connection that exists already."""
    web = Web(place)
    web.fetch(path)
    plan.wait()
    return repeat(plan, lambda: web.fetch(path), pause)


def request_lines(
    plan: WaitingPlan,
    place: Place,
    seed: int,
    choose: Callable[[random.Random], int],
    pauses: list[float],
) -> dict[str, Any]:
    """Sends a number and reads a line, on one connection; then pauses for one of `pauses`."""
    connection, dice = dial(place), random.Random(seed)
    connection.settimeout(None)
    plan.wait()

    def once() -> None:
        connection.sendall(b"%d\n" % choose(dice))
        while not connection.recv(4096).endswith(b"\n"):
            pass

    spans = []
    while not plan.is_over():
        begin = time.monotonic_ns()
        once()
        spans.append((begin, time.monotonic_ns()))
        time.sleep(dice.choice(pauses))
    return {**myself(), "spans": spans}


def visit(plan: WaitingPlan, place: Place, path: str, pause: float = 0.012) -> dict[str, Any]:
    """A victim: requests a page again and again, each time on a new connection."""
    plan.wait()

    def once() -> None:
        web = Web(place, headers="Connection: close\r\n")
        web.fetch(path)
        web.close()

    return repeat(plan, once, pause)


def disturb(plan: WaitingPlan, act: Callable[[], Any], gap: float) -> dict[str, Any]:
    """Acts again and again while the fault should be active; the spans of the acts."""
    plan.wait()
    spans = []
    while not plan.is_over():
        if plan.is_on():
            begin = time.monotonic_ns()
            act()
            spans.append((begin, time.monotonic_ns()))
            time.sleep(gap)
        else:
            time.sleep(0.005)
    return {**myself(), "spans": spans}


def request_often(plan: WaitingPlan, place: Place, path: str, gap: float) -> dict[str, Any]:
    """A client that requests an expensive page while the fault should be active."""
    web = Web(place)
    return disturb(plan, lambda: web.fetch(path), gap)


def stamped(log: Path, what: str, offset: int = 0) -> list[tuple[list[int], Span]]:
    """Lines `WHAT ID... BEGIN END` of a program's log; `offset` for times since the epoch."""
    found = []
    for line in log.read_text().splitlines():
        words = line.split()
        if words and words[0] == what:
            numbers = [int(word) for word in words[1:]]
            begin, end = (number - offset for number in numbers[-2:])
            found.append((numbers[:-2], (begin, end)))
    return found


def spans_of(log: Path, what: str, offset: int = 0) -> list[Span]:
    return merged([span for _, span in stamped(log, what, offset)])


def merged(spans: list[Span]) -> list[Span]:
    """The same time as disjoint spans."""
    joined: list[Span] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined


def await_until(check: Callable[[], Any], what: str, seconds: float = START_SECONDS) -> Any:
    """Waits until a check returns something."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if found := check():
                return found
        except OSError:
            pass
        if time.monotonic() > deadline:
            raise UnavailableError(f"waited too long for {what}")
        time.sleep(0.05)


def threads_named(pid: int, name: str) -> list[int]:
    """Ids of the threads of a process with a name of up to 15 bytes."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            comm = (task / "comm").read_text().strip()
        except OSError:  # ended in between
            continue
        if comm == name:
            found.append(int(task.name))
    return found


def children_of(pid: int) -> list[tuple[int, str]]:
    """The children of a process with their command lines."""
    found = []
    for file in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            words = Path(f"/proc/{file}/cmdline").read_bytes().replace(b"\0", b" ")
        except OSError:
            continue
        found.append((int(file), words.decode(errors="replace").strip()))
    return found


def cpu_of_threads(pid: int) -> dict[int, int]:
    """CPU time of each thread of a process in ns."""
    times = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            times[int(task.name)] = int((task / "schedstat").read_text().split()[0])
        except OSError:
            continue
    return times


class Served(Scenario):
    """A scenario with servers on loopback."""

    def serve(self, name: str, words: list[Any], port: int, **options: Any) -> subprocess.Popen:
        server = self.stack.start(words, **options)
        self.stack.await_port(server, port, name)
        return server

    def ruby(self, *words: str) -> tuple[int, int]:
        """Starts the shop in Ruby; its process and port."""
        port = free_port()
        log = self.lab.folder / "shop.log"
        command = ["ruby", PROGRAMS / "shop.rb", f"tcp:{port}", f"log={log}", *words]
        return self.serve("Ruby", command, port).pid, port

    def log(self, name: str) -> Path:
        return self.lab.folder / name

    def environment(self, **values: str) -> dict[str, str]:
        return {**os.environ, **values}

    def bystander(self, words: list[Any], has_session: bool = True) -> subprocess.Popen:
        """Starts a program without a port; it is killed at the end of the run.

        The scheduler may divide the CPU among sessions first: a priority counts within one.
        """
        child = subprocess.Popen(
            [str(word) for word in words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=has_session,
        )
        kind = "group" if has_session else "process"
        self.lab.will_undo(kind, child.pid, watchdog.start_of(child.pid))
        return child

"""Peers on the same machine that do not take data, or do not accept connections."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, ClassVar

from faults.plan import Span, myself, overlap, repeat, sleep_until
from faults.truth import Culprit, Thing, Truth
from real import http, servers
from real.scenario import Scenario, WaitingPlan

LAST_ATTEMPT_NS = 3_200_000_000
LINE = b"<14>shop: order 4711 paid\n"


class _FollowsPlan(Scenario):
    """The processes follow the plan themselves."""

    def inject(self) -> list[Span]:
        return self.plan.switch(lambda: None, lambda: None)


def pauses(plan: WaitingPlan, pause_s: float, take: Any, rest_s: float) -> dict[str, Any]:
    """Takes what arrives; while the fault is on, does something else for `pause_s` in between."""
    spans = []
    while not plan.is_over():
        if plan.is_on():
            begin = time.monotonic_ns()
            time.sleep(pause_s)
            spans.append((begin, time.monotonic_ns()))
        end = time.monotonic() + rest_s
        while time.monotonic() < end:
            take()
    return {**myself(), "spans": spans}


def collect_lines(plan: WaitingPlan, path: Path, pause_s: float) -> dict[str, Any]:
    """A log daemon on a datagram socket that stops reading now and then."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    server.bind(str(path))
    server.settimeout(0.05)
    plan.wait()

    def take() -> None:
        with contextlib.suppress(socket.timeout):
            server.recv(4096)

    return pauses(plan, pause_s, take, 0.1)


def send_lines(plan: WaitingPlan, path: Path) -> dict[str, Any]:
    client = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    client.connect(str(path))
    plan.wait()
    return repeat(plan, lambda: client.send(LINE), 0.003)


class UnixDatagramFull(_FollowsPlan):
    name = "unix_datagram_full"
    about = "a service waits in send, because the log daemon does not read its datagram socket"

    def setup(self) -> None:
        path = self.lab.folder / "log"
        pause_s = self.plan.pick(0.2, 0.4)
        self.daemon = self.client("logd", collect_lines, path, pause_s)
        while not path.exists():
            time.sleep(0.01)
        self.victim = self.client("shop", send_lines, path)

    def truth(self, faults: list[Span]) -> Truth:
        result = self.daemon.result()
        holds = [(begin, end) for begin, end in result["spans"]]
        culprit = Culprit("process", "logd", ["timer_sleep"], self.daemon.pid)
        culprit.objects = [Thing("any", "log")]
        return self.held(self.victim.result(), "sendto", holds, culprit)


def read_slowly(plan: WaitingPlan, port: int, pause_s: float) -> dict[str, Any]:
    """A consumer of a stream that stops reading now and then."""
    client = socket.socket()
    # Larger than two packets of loopback: the end of the pause opens the window, not a timer.
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 262144)
    client.connect(("127.0.0.1", port))
    client.settimeout(0.05)
    plan.wait()

    def take() -> None:
        with contextlib.suppress(socket.timeout):
            client.recv(262144)

    return pauses(plan, pause_s, take, 0.12)


def stream(plan: WaitingPlan, listener: socket.socket) -> dict[str, Any]:
    connection, _ = listener.accept()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
    plan.wait()
    block = b"event " * 6000

    def once() -> None:
        # The consumer may end first.
        with contextlib.suppress(OSError):
            connection.sendall(block)

    return repeat(plan, once, 0.002)


class ZeroWindow(_FollowsPlan):
    name = "zero_window"
    about = "a feed waits in send, because its consumer does not read and the window is closed"

    def setup(self) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        self.victim = self.client("feed", stream, listener)
        port = listener.getsockname()[1]
        self.reader = self.client("consumer", read_slowly, port, self.plan.pick(0.25, 0.45))
        listener.close()

    def truth(self, faults: list[Span]) -> Truth:
        result = self.reader.result()
        holds = [(begin, end) for begin, end in result["spans"]]
        names = ["send_delayed", "timer_sleep"]
        culprit = Culprit("process", "consumer", names, self.reader.pid)
        return self.held(self.victim.result(), "sendto", holds, culprit)


def accept_late(plan: WaitingPlan, listener: socket.socket, busy_s: float) -> dict[str, Any]:
    """A server with one thread: while it works on a large order, it accepts no connection."""
    listener.settimeout(0.05)
    plan.wait()
    spans = []
    # A second attempt to connect fails as well if it comes at a bad time; the third is 3 s later.
    while time.monotonic_ns() < plan.until + LAST_ATTEMPT_NS:
        try:
            connection, _ = listener.accept()
        except socket.timeout:
            continue
        with connection:
            large = connection.recv(100).startswith(b"large")
            if large:
                begin = time.monotonic_ns()
                time.sleep(busy_s)
                spans.append((begin, time.monotonic_ns()))
            connection.sendall(b"done\n")
    listener.close()
    return {**myself(), "spans": spans}


def order(plan: WaitingPlan, port: int, words: bytes, pause: float, always: bool) -> dict[str, Any]:
    plan.wait()
    # The clients must not all begin at once.
    time.sleep(pause)
    connects: list[Span] = []

    def once() -> None:
        if not always and not plan.is_on():
            return
        begin = time.monotonic_ns()
        with contextlib.suppress(OSError):
            connection = socket.create_connection(("127.0.0.1", port), timeout=8)
            connects.append((begin, time.monotonic_ns()))
            connection.sendall(words)
            connection.recv(100)
            connection.close()

    return {**repeat(plan, once, pause), "connects": connects}


class ListenOverflow(_FollowsPlan):
    name = "listen_overflow"
    about = "connect waits for a second, because the listen queue of a busy server is full"
    on: ClassVar[tuple[float, float]] = (1.4, 2.2)
    rounds = 5

    def setup(self) -> None:
        listener = socket.create_server(("127.0.0.1", 0), backlog=2)
        port = listener.getsockname()[1]
        busy_s = self.plan.pick(0.5, 0.8)
        self.server = self.client("orderd", accept_late, listener, busy_s)
        listener.close()
        self.large = self.client("bulk-order", order, port, b"large", 0.5, False)
        # The queue holds three connections.
        self.victims = [
            self.client("order", order, port, b"small", 0.02 + 0.007 * number, True)
            for number in range(5)
        ]

    def truth(self, faults: list[Span]) -> Truth:
        self.large.result()
        results = [victim.result() for victim in self.victims]
        busy = [(begin, end) for begin, end in self.server.result()["spans"]]
        names = ["network_retransmit", "timer_sleep"]
        culprit = Culprit("process", "orderd", names, self.server.pid)
        culprit.also = [self.large.pid]
        truth = Truth(self.plan, faults, [culprit])
        truth.notes["busy"] = [round((end - begin) / 1e6) for begin, end in busy]
        for result in results:
            for begin, end in result["connects"]:
                # Only a lost SYN takes that long: it is sent again after a second, however long the
                # queue was full.
                lost = end - begin > 900_000_000 and overlap((begin, end), busy) > 0
                truth.add(result, "connect", (begin, end), [end - begin if lost else 0])
        return truth


def pack(plan: WaitingPlan, fd: int, size: int) -> dict[str, Any]:
    """Writes lines to the pipe of another program."""
    plan.wait()
    block = os.urandom(size // 2).hex().encode()
    result = repeat(plan, lambda: os.write(fd, block), 0.004)
    os.close(fd)
    return result


class PipeFull(_FollowsPlan):
    name = "pipe_full"
    about = "an export waits in write, because the Ruby program at the end of its pipe is busy"
    packages: ClassVar[dict[str, str]] = {"ruby": "ruby"}

    def setup(self) -> None:
        read_end, write_end = os.pipe()
        self.log = self.lab.folder / "filter.log"
        plan = self.lab.folder / "plan.json"
        busy_ms = self.plan.whole(150, 350)
        self.filter = self.stack.start(
            ["ruby", servers.PROGRAMS / "filter.rb", plan, self.log, busy_ms],
            stdin=read_end,
            stdout=subprocess.DEVNULL,
        )
        self.victim = self.client("export", pack, write_end, 16384)
        os.close(read_end)
        os.close(write_end)

    def truth(self, faults: list[Span]) -> Truth:
        victim = self.victim.result()
        self.filter.wait(10)
        culprit = Culprit("process", "ruby", ["pipe_wait", "cpu_running"], self.filter.pid)
        return self.held(victim, "write", http.spans_of(self.log), culprit)


def store(plan: WaitingPlan, port: int) -> dict[str, Any]:
    """Stores a value in memcached; while the fault is on, in two writes."""
    connection = socket.create_connection(("127.0.0.1", port))
    value = b"v" * 600
    head = b"set basket 0 0 600\r\n"
    plan.wait()

    def once() -> None:
        if plan.is_on():
            connection.send(head)
            connection.send(value + b"\r\n")
        else:
            connection.send(head + value + b"\r\n")
        connection.recv(100)

    return repeat(plan, once, 0.01)


class NagleMemcached(_FollowsPlan):
    name = "nagle_memcached"
    about = "a client sends a command to memcached in two writes without TCP_NODELAY"
    packages: ClassVar[dict[str, str]] = {"memcached": "memcached"}

    def setup(self) -> None:
        self.server, port = servers.memcached(self.stack)
        self.victim = self.client("basket", store, port)

    def truth(self, faults: list[Span]) -> Truth:
        victim = self.victim.result()
        culprit = Culprit("own", "basket", ["send_delayed"], victim["pid"])
        return self.slowed(victim, "recvfrom", faults, culprit)


class FrozenGroup(Scenario):
    name = "frozen_group"
    about = "a client waits for memcached, whose control group is frozen"
    packages: ClassVar[dict[str, str]] = {"memcached": "memcached"}

    def setup(self) -> None:
        self.group = servers.Freezer(self.lab)
        self.server, port = servers.memcached(self.stack)
        self.group.add(self.server.pid)
        self.pause_s = self.plan.pick(0.2, 0.4)
        self.frozen: list[Span] = []
        self.victim = self.client("basket", look_up, port)

    def inject(self) -> list[Span]:
        for begin, end in self.plan.windows:
            sleep_until(begin)
            while time.monotonic_ns() < end:
                start = time.monotonic_ns()
                self.group.freeze()
                time.sleep(self.pause_s)
                self.group.thaw()
                self.frozen.append((start, time.monotonic_ns()))
                time.sleep(0.15)
        sleep_until(self.plan.until)
        return self.frozen

    def truth(self, faults: list[Span]) -> Truth:
        victim = self.victim.result()
        names = ["frozen", "signal_stop"]
        culprit = Culprit("process", "memcached", names, self.server.pid)
        # The group and the process that freezes it are the same answer.
        culprit.near = [self.group.path.name]
        culprit.also = [os.getpid()]
        culprit.objects = [Thing("any", self.group.path.name)]
        return self.held(victim, "recvfrom", faults, culprit)


def look_up(plan: WaitingPlan, port: int) -> dict[str, Any]:
    connection = socket.create_connection(("127.0.0.1", port))
    plan.wait()

    def once() -> None:
        connection.sendall(b"get basket\r\n")
        connection.recv(4096)

    return repeat(plan, once, 0.004)

"""A Redis server has one thread for commands: a slow one makes all clients wait."""

from __future__ import annotations

import socket
import time
from typing import Any, ClassVar

from faults.plan import Span, myself, repeat
from faults.truth import Culprit, Thing, Truth
from real import servers
from real.scenario import Scenario, WaitingPlan

# Computes until the time is up; Redis does nothing else meanwhile.
SCRIPT = (
    "local t = redis.call('TIME'); local stop = t[1] * 1000000 + t[2] + tonumber(ARGV[1]);"
    "repeat t = redis.call('TIME') until t[1] * 1000000 + t[2] >= stop; return 1"
)


def command(connection: socket.socket, *words: str) -> bytes:
    """Sends a command and waits for a reply that fits into one packet."""
    parts = [f"${len(word)}\r\n{word}\r\n" for word in words]
    connection.sendall(f"*{len(words)}\r\n{''.join(parts)}".encode())
    return connection.recv(65536)


def read_keys(plan: WaitingPlan, port: int) -> dict[str, Any]:
    """The victim: reads a key every few milliseconds, on a connection older than the recording."""
    connection = socket.create_connection(("127.0.0.1", port))
    command(connection, "SET", "cart:1", "3 apples")
    plan.wait()
    return repeat(plan, lambda: command(connection, "GET", "cart:1"), 0.005)


def report(plan: WaitingPlan, port: int, words: list[str], pause: float) -> dict[str, Any]:
    """The culprit's client: sends an expensive command again and again while the fault is on."""
    connection = socket.create_connection(("127.0.0.1", port))
    plan.wait()
    spans = []
    while not plan.is_over():
        if plan.is_on():
            begin = time.monotonic_ns()
            command(connection, *words)
            spans.append((begin, time.monotonic_ns()))
        time.sleep(pause)
    return {**myself(), "spans": spans}


class _Redis(Scenario):
    packages: ClassVar[dict[str, str]] = {"redis-server": "redis-server"}

    def start(self, words: list[str]) -> None:
        self.victim = self.client("cart", read_keys, self.port)
        self.reporter = self.client("report", report, self.port, words, 0.15)

    def inject(self) -> list[Span]:
        # The client follows the plan itself.
        return self.plan.switch(lambda: None, lambda: None)

    def truth(self, faults: list[Span]) -> Truth:
        commands = [(begin, end) for begin, end in self.reporter.result()["spans"]]
        # The server works for the other client: either name is the answer.
        culprit = Culprit("process", "redis-server", ["cpu_running"], self.server.pid)
        culprit.also = [self.reporter.pid]
        culprit.objects = [Thing("any", "report")]
        return self.held(self.victim.result(), "recvfrom", commands, culprit)


class RedisScript(_Redis):
    name = "redis_script"
    about = "a GET waits while Redis runs a long Lua script of another client"

    def setup(self) -> None:
        self.server, self.port = servers.redis(self.stack)
        self.start(["EVAL", SCRIPT, "0", str(self.plan.whole(120, 300) * 1000)])


class RedisKeys(_Redis):
    name = "redis_keys"
    about = "a GET waits while Redis lists a million keys with KEYS for another client"

    def setup(self) -> None:
        self.server, self.port = servers.redis(self.stack, "--enable-debug-command", "local")
        connection = socket.create_connection(("127.0.0.1", self.port))
        connection.settimeout(30)
        command(connection, "DEBUG", "POPULATE", str(self.plan.whole(700, 1100) * 1000))
        connection.close()
        # Matches no key: the reply is short, the search is not.
        self.start(["KEYS", "session:*:expired"])

"""Services without a fault, whose latencies vary by a factor of ten: naming a culprit is wrong."""

from __future__ import annotations

import random
from typing import Any, ClassVar

from faults.plan import Span, myself, repeat
from faults.truth import Truth
from lab import run
from real.scenario import WaitingPlan
from real.sealed.kit import PROGRAMS, Served, Web, await_until, dial, request_lines
from web.stack import free_port

# Seconds between two requests of a person.
PAUSES = [0.005, 0.02, 0.02, 0.25]
JAVA = {"java": "openjdk-17-jdk-headless", "javac": "openjdk-17-jdk-headless"}


class Quiet(Served):
    """A load of clients that log their own operations."""

    is_null = True
    call = "recvfrom"

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        truth = Truth(self.plan, [], [])
        for victim in [client.result() for client in self.clients]:
            for begin, end in victim.get("spans", []):
                truth.add(victim, self.call, (begin, end), [])
        return truth


class JavaScheduler(Quiet):
    name = "null_java_scheduler"
    about = "a Java server with a job pool that is never full, and timers for housekeeping"
    packages: ClassVar[dict[str, str]] = JAVA

    def setup(self) -> None:
        run("javac", "-d", self.lab.folder, PROGRAMS / "Dispatch.java")
        port = free_port()
        words = ["java", "-Xms128m", "-Xmx128m", "-XX:-UsePerfData", "-cp", self.lab.folder]
        self.serve("Java", [*words, "Dispatch", port, 1000], port)
        self.clients = [
            self.client("courier", request_lines, port, self.plan.seed + number, job_size, PAUSES)
            for number in range(3)
        ]


def job_size(dice: random.Random) -> int:
    return dice.choice([200, 200, 400, 800, 3000])


class NodeCluster(Quiet):
    name = "null_node_cluster"
    about = "three Node workers send pages, compressed archives, and events to open tabs"
    packages: ClassVar[dict[str, str]] = {"node": "nodejs"}

    def setup(self) -> None:
        port = free_port()
        self.serve("Node", ["node", PROGRAMS / "desk.js", port], port)
        self.clients = [
            self.client("reader", read_pages, port, self.plan.seed),
            *[self.client("tab", follow_events, port) for _ in range(2)],
        ]


def read_pages(plan: WaitingPlan, port: int, seed: int) -> dict[str, Any]:
    web, dice = Web(port), random.Random(seed)
    pages = ["/page", "/archive?n=8", "/archive?n=30", "/archive?n=200"]
    web.fetch("/archive?n=200")
    plan.wait()
    return repeat(plan, lambda: web.fetch(dice.choice(pages)), 0.04)


def follow_events(plan: WaitingPlan, port: int) -> dict[str, Any]:
    connection = dial(port)
    connection.settimeout(None)
    connection.sendall(b"GET /events HTTP/1.1\r\nHost: desk\r\n\r\n")
    plan.wait()
    while not plan.is_over():
        connection.recv(4096)
    return myself()


class PerlWorkers(Quiet):
    name = "null_perl_workers"
    about = "clients on a unix socket, and more Perl worker processes than they need"
    packages: ClassVar[dict[str, str]] = {"perl": "perl"}

    def setup(self) -> None:
        path = self.log("pricing.sock")
        self.stack.start(["perl", PROGRAMS / "pricing.pl", path, 6])
        await_until(path.exists, "Perl")
        seed, words = self.plan.seed, (digest_rounds, PAUSES)
        self.clients = [
            self.client("basket", request_lines, str(path), seed + number, *words)
            for number in range(3)
        ]


def digest_rounds(dice: random.Random) -> int:
    return dice.choice([300, 300, 600, 1500, 5000])

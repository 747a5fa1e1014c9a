"""Locks, collectors and pools inside a server: which of its threads made a client wait."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

from faults.plan import MS, Span
from faults.truth import Culprit, Thing, Truth
from real import http, servers
from real.scenario import Scenario
from web.stack import PYTHON, free_port

JAVA = {"java": "openjdk-17-jdk-headless", "javac": "openjdk-17-jdk-headless"}
# The end of a safepoint and its length, with `tn` (ns of CLOCK_MONOTONIC) as the decoration.
SAFEPOINT = re.compile(r"\[(\d+)ns\].*Total: *(\d+) ns")


class _Server(Scenario):
    """A server with a thread that does something while `/on` was called last."""

    server: servers.Child
    port: int

    def start_victim(self) -> None:
        self.log = self.lab.folder / "spans.log"
        self.victim = self.client("browser", http.fetch, self.port, "/", 0.008)

    def begin_fault(self) -> None:
        self.switch("/on")

    def end_fault(self) -> None:
        self.switch("/off")

    def switch(self, path: str) -> None:
        connection = http.connect(self.port)
        http.get(connection, path)
        connection.close()

    def of_threads(self, name: str, pattern: str, mechanisms: list[str]) -> Culprit:
        culprit = Culprit("process", name, mechanisms, self.server.pid)
        culprit.tids = servers.threads_of(self.server.pid, pattern)
        return culprit


class JavaMonitor(_Server):
    name = "java_monitor"
    about = "a page waits for a Java monitor that a batch thread holds while it computes"
    packages: ClassVar[dict[str, str]] = JAVA

    def setup(self) -> None:
        self.log = self.lab.folder / "spans.log"
        words = [4, self.log, "lock", self.plan.whole(120, 300)]
        self.server, self.port = servers.java(self.stack, "Shop", *words)
        self.start_victim()

    def truth(self, faults: list[Span]) -> Truth:
        names = ["lock_futex", "lock_program", "cpu_running"]
        culprit = self.of_threads("batch-writer", "batch-writer", names)
        return self.held(self.victim.result(), "recvfrom", http.spans_of(self.log), culprit)


class JavaCollector(_Server):
    name = "java_collector"
    about = "a page waits for a full collection of the Java heap"
    packages: ClassVar[dict[str, str]] = JAVA

    def setup(self) -> None:
        self.safepoints = self.lab.folder / "safepoints.log"
        options = ["-XX:+UseSerialGC", "-Xms192m", "-Xmx192m", "-Xmn24m"]
        options.append(f"-Xlog:safepoint:file={self.safepoints}:tn")
        # Entries of the table, in thousands.
        words = [4, self.lab.folder / "spans.log", "garbage", self.plan.whole(1700, 2100)]
        self.server, self.port = servers.java(self.stack, "Shop", *words, options=options)
        self.start_victim()

    def truth(self, faults: list[Span]) -> Truth:
        stops = safepoints(self.safepoints)
        names = ["cpu_running", "lock_futex", "lock_program"]
        culprit = self.of_threads("VM Thread", "VM Thread", names)
        # The thread that fills the heap is the same answer.
        culprit.tids += servers.threads_of(self.server.pid, "importer")
        return self.held(self.victim.result(), "recvfrom", stops, culprit)


def safepoints(file: Path) -> list[Span]:
    found = []
    for line in file.read_text().splitlines():
        if match := SAFEPOINT.search(line):
            end, length = int(match.group(1)), int(match.group(2))
            if length > 2 * MS:
                found.append((end - length, end))
    return http.merged(found)


class JavaPool(_Server):
    name = "java_pool"
    about = "a page waits for a Java thread pool, all of whose threads serve slow reports"
    packages: ClassVar[dict[str, str]] = JAVA

    def setup(self) -> None:
        words = [2, self.lab.folder / "spans.log", "none", 0]
        self.server, self.port = servers.java(self.stack, "Shop", *words)
        self.start_victim()
        path = f"/report?ms={self.plan.whole(200, 400)}"
        self.reports = self.client("reports", http.press, self.port, path, 0.12, 2)

    def inject(self) -> list[Span]:
        return self.plan.switch(lambda: None, lambda: None)

    def truth(self, faults: list[Span]) -> Truth:
        victim, reports = self.victim.result(), self.reports.result()
        busy = http.held_by_all([reports["spans"]], 2)
        names = ["timer_sleep", "producer_idle", "lock_futex"]
        culprit = self.of_threads("pool-1-thread-*", "pool-1-thread-*", names)
        culprit.also = [reports["pid"]]
        culprit.middlemen = ["HTTP-Dispatcher"]
        culprit.objects = [Thing("any", "reports")]
        return self.slowed(victim, "recvfrom", busy, culprit)


class GoMutex(_Server):
    name = "go_mutex"
    about = "a page waits for a Go mutex that a batch goroutine holds while it computes"
    packages: ClassVar[dict[str, str]] = {"go": "golang-go"}

    def setup(self) -> None:
        self.log = self.lab.folder / "spans.log"
        self.server, self.port = servers.go(self.stack, "shop", self.log, self.plan.whole(120, 300))
        self.start_victim()

    def truth(self, faults: list[Span]) -> Truth:
        victim = self.victim.result()
        # Goroutines move between threads: the process is the answer.
        names = ["cpu_running", "lock_futex", "lock_program"]
        culprit = Culprit("process", "shop", names, self.server.pid)
        return self.held(victim, "recvfrom", http.spans_of(self.log), culprit)


class PythonGil(_Server):
    name = "python_gil"
    about = "a page waits for the global interpreter lock, which a thread keeps in a C function"

    def setup(self) -> None:
        self.port = free_port()
        self.log = self.lab.folder / "spans.log"
        count = self.plan.whole(15, 28) * 1_000_000
        words: list[Any] = [PYTHON, servers.PROGRAMS / "threads.py", self.port, self.log, count]
        self.server = self.stack.start(words)
        self.stack.await_port(self.server, self.port, "the service")
        self.start_victim()

    def truth(self, faults: list[Span]) -> Truth:
        names = ["lock_futex", "lock_program", "cpu_running"]
        culprit = self.of_threads("reporter", "reporter", names)
        return self.held(self.victim.result(), "recvfrom", http.spans_of(self.log), culprit)

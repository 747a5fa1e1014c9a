"""Loads without a fault: busy, uneven, or idle by design. Any culprit is wrong."""

from __future__ import annotations

import socket
import subprocess
import time
from functools import partial
from typing import Any, ClassVar

from faults.plan import Span, myself, repeat
from faults.truth import Truth
from real import http, rows, servers
from real.scenario import Scenario, WaitingPlan
from real.tuned.databases import POSTGRES
from real.tuned.redis import command, read_keys
from web.stack import PostgreSQL


class Null(Scenario):
    is_null = True

    def inject(self) -> list[Span]:
        self.plan.switch(lambda: None, lambda: None)
        return []


def take_jobs(plan: WaitingPlan, port: int) -> dict[str, Any]:
    """A worker that waits for jobs most of the time."""
    connection = socket.create_connection(("127.0.0.1", port))
    plan.wait()
    return repeat(plan, lambda: command(connection, "BLPOP", "jobs", "1"), 0.001)


def push_jobs(plan: WaitingPlan, port: int) -> dict[str, Any]:
    """Pushes jobs in bursts, with pauses of different lengths."""
    connection = socket.create_connection(("127.0.0.1", port))
    plan.wait()
    spans = []
    while not plan.is_over():
        for _ in range(plan.whole(1, 6)):
            begin = time.monotonic_ns()
            command(connection, "RPUSH", "jobs", "resize 17.png")
            spans.append((begin, time.monotonic_ns()))
        time.sleep(plan.pick(0.05, 0.9))
    return {**myself(), "spans": spans}


class NullQueueWorkers(Null):
    name = "null_queue_workers"
    about = "workers wait for jobs with BLPOP, a client pushes some now and then"
    packages: ClassVar[dict[str, str]] = {"redis-server": "redis-server"}

    def setup(self) -> None:
        _, port = servers.redis(self.stack)
        self.workers = [self.client("worker", take_jobs, port) for _ in range(3)]
        self.victim = self.client("scheduler", push_jobs, port)

    def truth(self, faults: list[Span]) -> Truth:
        for worker in self.workers:
            worker.result()
        return self.steady(self.victim.result(), "recvfrom")


def query(plan: WaitingPlan, connect: rows.Connect) -> dict[str, Any]:
    """Queries that take between one and ten milliseconds, with pauses of a user between them."""
    cursor = connect().cursor()
    plan.wait()
    spans = []
    while not plan.is_over():
        count = plan.whole(2000, 20000)
        begin = time.monotonic_ns()
        cursor.execute(f"SELECT sum(n) FROM generate_series(1, {count}) AS n")
        spans.append((begin, time.monotonic_ns()))
        time.sleep(plan.pick(0.01, 0.3))
    return {**myself(), "spans": spans}


class NullQueries(Null):
    name = "null_queries"
    about = "PostgreSQL queries of different sizes, with pauses between them"
    packages: ClassVar[dict[str, str]] = POSTGRES

    def setup(self) -> None:
        connect = partial(rows.postgres, PostgreSQL(self.stack, rows.TABLE).port)
        self.other = self.client("report", query, connect)
        self.victim = self.client("shop", query, connect)

    def truth(self, faults: list[Span]) -> Truth:
        self.other.result()
        return self.steady(self.victim.result(), "poll")


class NullStaticPages(Null):
    name = "null_static_pages"
    about = "nginx serves pages of different sizes on kept and on new connections"
    packages: ClassVar[dict[str, str]] = {"nginx": "nginx-light"}

    def setup(self) -> None:
        folder = self.lab.folder / "www"
        folder.mkdir()
        (folder / "small").write_bytes(b"s" * 500)
        (folder / "large").write_bytes(b"l" * 400_000)
        nginx = servers.Nginx(self.stack, f"root {folder};")
        self.other = self.client("crawler", http.fetch_anew, nginx.port, "/large", 0.02)
        self.victim = self.client("browser", http.fetch, nginx.port, "/small", 0.005)

    def truth(self, faults: list[Span]) -> Truth:
        self.other.result()
        return self.steady(self.victim.result(), "recvfrom")


class NullLongPoll(Null):
    name = "null_long_poll"
    about = "a Node server holds long polls open, as they are meant to be, and serves short pages"
    packages: ClassVar[dict[str, str]] = {"node": "nodejs"}

    def setup(self) -> None:
        _, port = servers.node(self.stack, "shop.js", self.lab.folder / "log")
        self.polls = [
            self.client("inbox", http.fetch, port, f"/wait?ms={self.plan.whole(900, 1500)}", 0.01)
            for _ in range(2)
        ]
        self.victim = self.client("browser", http.fetch, port, "/", 0.01)

    def truth(self, faults: list[Span]) -> Truth:
        for poll in self.polls:
            poll.result()
        return self.steady(self.victim.result(), "recvfrom")


def spawn(plan: WaitingPlan) -> int:
    """Short programs, one after another, at the lowest priority."""
    count = 0
    while not plan.is_over():
        subprocess.run(["nice", "-n", "19", "gzip", "-c", "/bin/bash"], stdout=subprocess.DEVNULL)
        count += 1
        time.sleep(plan.pick(0.02, 0.2))
    return count


class NullNicedJobs(Null):
    name = "null_niced_jobs"
    about = "clients of Redis, while short jobs of the lowest priority compress files"
    packages: ClassVar[dict[str, str]] = {"redis-server": "redis-server", "gzip": "gzip"}

    def setup(self) -> None:
        _, port = servers.redis(self.stack)
        self.victim = self.client("cart", read_keys, port)

    def load(self) -> None:
        self.jobs = self.client("cron", spawn)

    def truth(self, faults: list[Span]) -> Truth:
        self.jobs.result()
        return self.steady(self.victim.result(), "recvfrom")


class NullPhpPages(Null):
    name = "null_php_pages"
    about = "PHP pages behind nginx, with more children than needed"
    packages: ClassVar[dict[str, str]] = {"nginx": "nginx-light", "/usr/sbin/php-fpm*": "php-fpm"}

    def setup(self) -> None:
        php = servers.Php(self.stack, 4)
        nginx = servers.Nginx(self.stack, php.location)
        self.other = self.client("crawler", http.fetch_anew, nginx.port, "/fast.php", 0.05)
        self.victim = self.client("browser", http.fetch, nginx.port, "/fast.php", 0.01)

    def truth(self, faults: list[Span]) -> Truth:
        self.other.result()
        return self.steady(self.victim.result(), "recvfrom")

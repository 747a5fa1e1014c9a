"""Several programs in a row, and two faults at once."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, ClassVar

from faults.plan import Span, excess, myself, overlap
from faults.truth import Culprit, Thing, Truth
from real.scenario import WaitingPlan
from real.sealed.kernel import EXT4
from real.sealed.kit import PROGRAMS, Served, browse, dial
from real.sealed.postgres import PACKAGES, TABLES, disturb_with, of_backend
from real.sealed.stores import FILL, Redis, redis, sort
from web.stack import PostgreSQL, free_port

HAPROXY = """
global
    maxconn 200
    nbthread 1
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
    timeout queue 30s
frontend front
    bind 127.0.0.1:@PORT@
    default_backend apps
backend apps
    option http-server-close
    server app 127.0.0.1:@APP@ maxconn 50
"""


def start_haproxy(scenario: Served, app_port: int) -> int:
    """Starts HAProxy in front of a server; its port."""
    port, config = free_port(), scenario.log("haproxy.cfg")
    config.write_text(HAPROXY.replace("@PORT@", str(port)).replace("@APP@", str(app_port)))
    scenario.serve("HAProxy", ["haproxy", "-db", "-f", config], port)
    return port


class FourInARow(Served):
    name = "haproxy_gunicorn_pg_lock"
    about = "a page waits for HAProxy, gunicorn, PostgreSQL, and there for a migration's table lock"
    packages: ClassVar[dict[str, str]] = {
        **PACKAGES,
        "haproxy": "haproxy",
        "gunicorn": "gunicorn",
    }

    def setup(self) -> None:
        database = PostgreSQL(self.stack, TABLES).port
        app_port = free_port()
        words = ["gunicorn", "--chdir", PROGRAMS, "--workers", "2", "--timeout", "60"]
        words += ["--worker-tmp-dir", self.lab.folder, "--bind", f"127.0.0.1:{app_port}"]
        values = {"SHOP_DATABASE": str(database), "PYTHONDONTWRITEBYTECODE": "1"}
        self.serve("gunicorn", [*words, "catalogue:app"], app_port, env=self.environment(**values))
        port = start_haproxy(self, app_port)
        rounds = self.plan.whole(700, 1500) * 1000
        work = f"SELECT sum(sqrt(n)) FROM generate_series(1, {rounds}) n"
        lock = "LOCK TABLE orders IN ACCESS EXCLUSIVE MODE"
        words = ["BEGIN", lock, work, "COMMIT"]
        self.victim = self.client("shopper", browse, port, "/orders", 0.012)
        self.other = self.client("migration", disturb_with, database, words, 0.15)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        other = self.other.result()
        culprit = of_backend(other, "cpu_running", "lock_program")
        culprit.middlemen = ["haproxy", "gunicorn*", "postgres"]
        culprit.objects = [Thing("any", "orders")]
        return self.held(self.victim.result(), "recvfrom", other["spans"], culprit)


class TwoFaults(Redis):
    name = "redis_and_disk"
    about = "an operation waits for Redis, which sorts for another client, and for a slow disk"

    def setup(self) -> None:
        self.disk = self.lab.disk(48)
        folder = self.lab.mount(self.disk, "ext4", *EXT4)
        port = self.start_server()
        length = self.plan.whole(200, 320) * 1000
        redis(dial(port), "EVAL", FILL, "0", str(length))
        self.delay_us = self.plan.whole(12, 28) * 1000
        self.victim = self.client("orders", order, port, folder / "orders.log")
        self.other = self.client("price-list", sort, port, 0.06)

    def begin_fault(self) -> None:
        self.disk.set(write_us=self.delay_us)

    def end_fault(self) -> None:
        self.disk.set(write_us=0)

    def truth(self, faults: list[Span]) -> Truth:
        other, victim = self.other.result(), self.victim.result()
        of_redis = Culprit("process", "redis-server", ["cpu_running"], self.server.pid)
        of_redis.also = [other["pid"]]
        names = ["block_service", "journal_wait", "io_wait", "misbehaving_disk"]
        of_disk = Culprit("device", self.disk.name, names)
        of_disk.near = ["jbd2/*", "slowfs", "kworker/*"]
        of_disk.objects = [Thing("device", self.disk.name)]
        truth = Truth(self.plan, faults, [of_redis, of_disk])
        flushes = [
            end - middle
            for (begin, end), middle in zip(victim["spans"], victim["middles"])
            if overlap((begin, end), faults) == 0
        ]
        usual = sorted(flushes)[len(flushes) // 2]
        for (begin, end), middle in zip(victim["spans"], victim["middles"]):
            of_sort = overlap((begin, middle), other["spans"])
            truth.add(victim, "", (begin, end), [of_sort, excess((middle, end), faults, usual)])
        return truth


def order(plan: WaitingPlan, port: int, path: Path) -> dict[str, Any]:
    """The victim: counts an order in Redis, then appends it to a log and flushes that."""
    connection = dial(port)
    connection.settimeout(None)
    redis(connection, "INCR", "orders")
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    plan.wait()
    spans, middles = [], []
    while not plan.is_over():
        begin = time.monotonic_ns()
        redis(connection, "INCR", "orders")
        middles.append(time.monotonic_ns())
        os.write(fd, b"o" * 200)
        os.fsync(fd)
        spans.append((begin, time.monotonic_ns()))
        time.sleep(0.02)
    return {**myself(), "spans": spans, "middles": middles}

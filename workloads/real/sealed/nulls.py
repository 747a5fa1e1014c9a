"""Loads without a fault that look busy: naming a culprit is wrong."""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path
from typing import Any, ClassVar

from faults.plan import Span, myself, repeat
from faults.truth import Truth
from real.scenario import WaitingPlan
from real.sealed.chains import start_haproxy
from real.sealed.kernel import EXT4
from real.sealed.kit import Served, Web, browse
from real.sealed.mariadb import MariaDB, session
from real.sealed.proxies import Apache
from real.sealed.rabbitmq import Channel, RabbitMQ, ready
from real.sealed.runtimes import Java
from real.sealed.stores import put, start_etcd


class Null(Served):
    is_null = True
    call = "recvfrom"

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        return self.steady(self.victim.result(), self.call)


class NullQueries(MariaDB):
    name = "null_mariadb_queries"
    about = "queries of very different size, from two sessions, none of which waits for the other"
    is_null = True

    def setup(self) -> None:
        port = self.start_server()
        self.sessions = [
            self.client("shop", query, port, self.plan.seed + number) for number in range(2)
        ]

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        results = [one.result() for one in self.sessions]
        return self.steady(results[0], "recvfrom")


def query(plan: WaitingPlan, port: int, seed: int) -> dict[str, Any]:
    """Point queries, and now and then a sum over a product of the table with itself."""
    cursor, dice = session(port).cursor(), random.Random(seed)
    plan.wait()

    def once() -> None:
        rows = dice.choice([1, 1, 1, 1, 10, 150])
        cursor.execute("SELECT sum(a.stock) FROM items a, items b WHERE a.id <= %s", (rows,))

    return repeat(plan, once, 0.025)


class NullConsumers(RabbitMQ):
    name = "null_rabbitmq_consumers"
    about = "consumers of RabbitMQ wait for messages that come at random times"
    is_null = True

    def setup(self) -> None:
        port = self.start_broker()
        self.consumers = [self.client("worker", consume, port) for _ in range(2)]
        self.producer = self.client("producer", produce, port, self.plan.seed)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        self.producer.result()
        results = [consumer.result() for consumer in self.consumers]
        return self.steady(results[0], "recvfrom")


def consume(plan: WaitingPlan, port: int) -> dict[str, Any]:
    channel, spans = ready(port, "jobs"), []
    is_last = False
    while not is_last:
        begin = time.monotonic_ns()
        is_last = channel.receive() == b"end"
        spans.append((begin, time.monotonic_ns()))
    return {**myself(), "spans": spans}


def produce(plan: WaitingPlan, port: int, seed: int) -> dict[str, Any]:
    channel, dice = Channel(port), random.Random(seed)
    plan.wait()
    result = repeat(
        plan, lambda: (channel.publish("jobs", b"job"), time.sleep(dice.expovariate(12))), 0.001
    )
    for _ in range(2):
        # Consumers take turns.
        channel.publish("jobs", b"end")
    return result


class NullFiles(Apache):
    name = "null_apache_files"
    about = "Apache sends small and large files; the time depends on the size alone"
    is_null = True

    def setup(self) -> None:
        port = self.start_server(4, "On", "CustomLog @LAB@/access.log long")
        for name, size in (("image", 300_000), ("video", 3_000_000)):
            (self.lab.folder / "site" / name).write_bytes(os.urandom(size))
        self.victim = self.client("shopper", download, port, self.plan.seed)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        return self.steady(self.victim.result(), "recvfrom")


def download(plan: WaitingPlan, port: int, seed: int) -> dict[str, Any]:
    web, dice = Web(port), random.Random(seed)
    plan.wait()
    pages = ["/page", "/page", "/page", "/image", "/image", "/video"]
    return repeat(plan, lambda: web.fetch(dice.choice(pages)), 0.03)


class NullProxy(Null):
    name = "null_haproxy_pages"
    about = "HAProxy passes pages and long polls to a Ruby server that has no news for a while"
    packages: ClassVar[dict[str, str]] = {"haproxy": "haproxy", "ruby": "ruby"}

    def setup(self) -> None:
        _, app_port = self.ruby()
        port = start_haproxy(self, app_port)
        path = f"/news?ms={self.plan.whole(150, 450)}"
        self.pollers = [self.client("browser", browse, port, path, 0.02) for _ in range(2)]
        self.victim = self.client("shopper", browse, port, "/page", 0.02)


class NullScript(Null):
    name = "null_batch_script"
    about = "a shell script that finds, sorts and compresses files, and sleeps between"
    packages: ClassVar[dict[str, str]] = {"gzip": "gzip"}
    call = "wait4"

    def setup(self) -> None:
        self.victim = self.client("batch", run_batch, self.lab.folder)


def run_batch(plan: WaitingPlan, folder: Path) -> dict[str, Any]:
    script = f"find /usr/share/zoneinfo | sort -r | gzip -9 >{folder}/list.gz; sleep 0.05"
    plan.wait()
    return repeat(plan, lambda: subprocess.run(["sh", "-c", script], check=True), 0.2)


class NullJava(Java):
    name = "null_java_requests"
    about = "a Java server answers three clients that pause at random times"
    is_null = True

    def setup(self) -> None:
        port = self.java()
        self.clients = [
            self.client("shopper", pause_and_browse, port, self.plan.seed + number)
            for number in range(3)
        ]

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        results = [client.result() for client in self.clients]
        return self.steady(results[0], "recvfrom")


def pause_and_browse(plan: WaitingPlan, port: int, seed: int) -> dict[str, Any]:
    web, dice = Web(port), random.Random(seed)
    plan.wait()

    def once() -> None:
        web.fetch("/item")
        time.sleep(dice.choice([0, 0.005, 0.3]))

    return repeat(plan, once, 0.005)


class NullEtcd(Null):
    name = "null_etcd_puts"
    about = "etcd writes to a disk whose requests always take a few milliseconds"
    packages: ClassVar[dict[str, str]] = {"etcd": "etcd-server"}

    def setup(self) -> None:
        disk = self.lab.disk(400)
        folder = self.lab.mount(disk, "ext4", *EXT4)
        self.victim = self.client("config", put, start_etcd(self, folder))
        disk.set(write_us=self.plan.whole(1, 3) * 1000)

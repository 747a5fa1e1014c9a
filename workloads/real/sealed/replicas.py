"""Other hosts and replicas: a standby of PostgreSQL, and a firewall that lost its connections."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any, ClassVar

from faults.network import THERE
from faults.plan import SECOND, Span, overlap, repeat, undisturbed
from faults.truth import Culprit, Thing, Truth
from lab import UnavailableError, run
from real.scenario import WaitingPlan
from real.sealed.kernel import EXT4
from real.sealed.kit import Served, await_until
from real.sealed.network import Distant
from real.sealed.postgres import PACKAGES, is_ready, session
from real.sealed.stores import redis
from web.stack import free_port, user

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "dynamic_shared_memory_type": "mmap",
    "shared_buffers": "16MB",
    "autovacuum": "off",
    "checkpoint_timeout": "1h",
    "wal_level": "replica",
}


class Standby(Served):
    name = "pg_standby"
    about = "a COMMIT waits for the standby of PostgreSQL, whose disk became slow"
    packages: ClassVar[dict[str, str]] = PACKAGES

    def setup(self) -> None:
        self.disk = self.lab.disk(400)
        folder = self.lab.mount(self.disk, "ext4", *EXT4)
        folder.chmod(0o755)
        self.owner, self.programs = user("postgres"), programs()
        port = self.start_primary()
        self.start_standby(port, folder)
        self.delay_us = self.plan.whole(15, 50) * 1000
        self.victim = self.client("payments", commit, port)

    def as_owner(self, program: str, *words: Any) -> None:
        ids = [f"--reuid={self.owner.pw_uid}", f"--regid={self.owner.pw_gid}", "--clear-groups"]
        run("setpriv", *ids, self.programs / program, *map(str, words))

    def start_server(self, data: Path, **more: str) -> int:
        port = free_port()
        words = [f"-c{name}={value}" for name, value in {**SETTINGS, **more}.items()]
        command = [self.programs / "postgres", "-D", data, "-p", port, *words]
        server = self.stack.start(command, self.owner)
        self.stack.await_port(server, port, "PostgreSQL")
        await_until(lambda: is_ready(port), "PostgreSQL")
        return port

    def start_primary(self) -> int:
        data = self.stack.folder("primary", self.owner)
        options = ["-A", "trust", "-U", "shop", "--no-locale", "--no-sync", "--wal-segsize=4"]
        self.as_owner("initdb", "-D", data, *options)
        # Only the standby flushes: its disk is the one that matters.
        port = self.start_server(data, fsync="off", synchronous_standby_names="*")
        cursor = session(port, "fill").cursor()
        cursor.execute("SET synchronous_commit = local")
        cursor.execute("CREATE TABLE orders (id int PRIMARY KEY, state text)")
        cursor.execute("INSERT INTO orders VALUES (7, 'open')")
        return port

    def start_standby(self, primary: int, folder: Path) -> None:
        data = self.stack.folder("standby", self.owner, folder)
        data.chmod(0o700)
        words = ["-D", data, "-h", "127.0.0.1", "-p", primary, "-U", "shop"]
        self.as_owner("pg_basebackup", *words, "-R", "-X", "stream", "-c", "fast", "--no-sync")
        run("sync", "-f", folder)
        self.start_server(data, hot_standby="on")
        cursor = session(primary, "fill").cursor()
        await_until(lambda: is_synchronous(cursor), "the standby")

    def begin_fault(self) -> None:
        self.disk.set(write_us=self.delay_us)

    def end_fault(self) -> None:
        self.disk.set(write_us=0)

    def truth(self, faults: list[Span]) -> Truth:
        names = ["block_service", "journal_wait", "io_wait", "misbehaving_disk"]
        culprit = Culprit("device", self.disk.name, names)
        culprit.middlemen = ["postgres"]
        culprit.near = ["jbd2/*", "slowfs", "kworker/*"]
        culprit.objects = [Thing("device", self.disk.name), Thing("any", "pg_wal")]
        # A request in progress takes the delay that it started with.
        spans = [(begin, end + self.delay_us * 1000) for begin, end in faults]
        return self.slowed(self.victim.result(), "poll", spans, culprit)


def programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_basebackup"))
    if not found:
        raise UnavailableError("PostgreSQL has no pg_basebackup")
    return found[-1].parent


def is_synchronous(cursor: Any) -> bool:
    cursor.execute("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")
    return cursor.fetchone()[0] == 1


def commit(plan: WaitingPlan, port: int) -> dict[str, Any]:
    """The victim: small transactions, each of which has to reach the standby."""
    cursor = session(port, "payments").cursor()
    sql = "UPDATE orders SET state = 'paid' WHERE id = 7"
    cursor.execute(sql)
    plan.wait()
    return repeat(plan, lambda: cursor.execute(sql), 0.02)


class FirewallState(Distant):
    name = "firewall_state"
    about = "a command times out on a pooled connection that a firewall has forgotten"
    packages: ClassVar[dict[str, str]] = {"redis-server": "redis-server", "nft": "nftables"}
    on = (1.8, 2.4)

    def setup(self) -> None:
        self.connect()
        self.net.filter()
        self.net.nft(
            "add set ip lab known { type inet_service; size 4096; flags dynamic; timeout 1h; }"
        )
        for rule in (
            "tcp dport 6379 tcp flags & (syn | ack) == syn add @known { tcp sport }",
            "tcp dport 6379 tcp sport != @known counter drop",
        ):
            self.net.nft(f"add rule ip lab in {rule}")
        words = ["redis-server", "--port", "6379", "--bind", THERE, "--protected-mode", "no"]
        self.serve_there([*words, "--save", "", "--dir", self.lab.folder])
        self.patience_s = self.plan.pick(0.5, 0.8)
        self.victim = self.net.start("cart", 0, use_pool, self.plan, self.patience_s)

    def begin_fault(self) -> None:
        # As after a failover to a firewall that does not know the open connections.
        self.net.nft("flush set ip lab known")

    def truth(self, faults: list[Span]) -> Truth:
        victim = self.victim.result()
        culprit = Culprit("peer", THERE, ["network_retransmit"])
        culprit.objects = [Thing("peer", f"{THERE}:6379")]
        truth = Truth(self.plan, faults, [culprit])
        usual = undisturbed(victim["spans"], faults)
        for begin, end in victim["spans"]:
            is_lost = end - begin > self.patience_s * SECOND / 2 and overlap((begin, end), faults)
            truth.add(victim, "poll", (begin, end), [end - begin - usual if is_lost else 0])
        return truth


def use_pool(plan: WaitingPlan, patience_s: float) -> dict[str, Any]:
    """The victim: takes turns with two connections, and replaces one that does not reply."""

    def connected() -> socket.socket:
        connection = socket.create_connection((THERE, 6379), 2)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(patience_s)
        return connection

    pool = [await_until(connected, "Redis") for _ in range(2)]
    plan.wait()

    def once() -> None:
        connection = pool.pop(0)
        try:
            redis(connection, "INCR", "carts")
        except socket.timeout:
            connection.close()
            connection = connected()
            redis(connection, "INCR", "carts")
        pool.append(connection)

    return repeat(plan, once, 0.012)

"""Redis that pauses, forks or is traced, memcached that is stopped, etcd on a slow disk."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any, ClassVar

from faults.plan import MS, Span, repeat
from faults.truth import Culprit, Thing, Truth
from lab import UnavailableError
from real.scenario import WaitingPlan
from real.sealed.kit import Served, Web, await_until, children_of, dial, disturb, merged
from web.stack import free_port

REDIS = {"redis-server": "redis-server"}
FILL = """
for n = 1, tonumber(ARGV[1]) do redis.call('RPUSH', 'prices', (n * 7919) % 1000003) end
"""

# Of a command that forks, beside the fork.
FORK_SLACK_NS = 4 * MS


def redis(connection: socket.socket, *words: str) -> bytes:
    """Sends a command; the reply, if it is one line or one short string."""
    parts = [f"${len(word)}\r\n{word}\r\n" for word in words]
    connection.sendall(f"*{len(words)}\r\n{''.join(parts)}".encode())
    return connection.recv(65536)


def increment(plan: WaitingPlan, port: int) -> dict[str, Any]:
    """A victim: counts visits in Redis."""
    connection = dial(port)
    connection.settimeout(None)
    redis(connection, "INCR", "visits")
    plan.wait()
    return repeat(plan, lambda: redis(connection, "INCR", "visits"), 0.006)


class Redis(Served):
    packages: ClassVar[dict[str, str]] = REDIS

    def start_server(self) -> int:
        port = free_port()
        words = ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", ""]
        words += ["--dir", self.lab.folder, "--enable-debug-command", "yes"]
        self.server = self.serve("Redis", words, port)
        return port


def sort(plan: WaitingPlan, port: int, gap: float) -> dict[str, Any]:
    connection = dial(port)
    return disturb(
        plan, lambda: redis(connection, "SORT", "prices", "ALPHA", "LIMIT", "0", "1"), gap
    )


def pause(plan: WaitingPlan, port: int, ms: int) -> dict[str, Any]:
    """An operator that pauses all writes for a while, as before a failover."""
    connection = dial(port)
    return disturb(
        plan, lambda: redis(connection, "CLIENT", "PAUSE", str(ms), "WRITE"), ms / 1000 + 0.3
    )


class RedisPause(Redis):
    name = "redis_client_pause"
    about = "an INCR waits because an operator has paused the writes of all clients of Redis"

    def setup(self) -> None:
        port = self.start_server()
        self.pause_ms = self.plan.whole(120, 300)
        self.victim = self.client("visits", increment, port)
        self.other = self.client("failover", pause, port, self.pause_ms)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        other = self.other.result()
        # Redis looks for the end of a pause ten times a second.
        pauses = [(begin, end + (self.pause_ms + 120) * MS) for begin, end in other["spans"]]
        culprit = Culprit("process", "failover", ["timer_sleep", "producer_idle"], other["pid"])
        culprit.middlemen = ["redis-server"]
        culprit.objects = [Thing("any", "failover")]
        return self.slowed(self.victim.result(), "recvfrom", pauses, culprit)


def snapshot(plan: WaitingPlan, port: int, server: int) -> dict[str, Any]:
    """Starts a snapshot, and ends it soon: only the fork matters."""
    connection = dial(port)
    forks = []

    def act() -> None:
        begin = time.monotonic_ns()
        if redis(connection, "BGSAVE").startswith(b"-"):
            raise RuntimeError("Redis still has the child of the snapshot before")
        end = time.monotonic_ns()
        for line in redis(connection, "INFO", "stats").decode().splitlines():
            if line.startswith("latest_fork_usec:"):
                forks.append((int(line.partition(":")[2]), begin, end))
        time.sleep(0.05)
        for pid, _ in children_of(server):
            os.kill(pid, signal.SIGUSR1)
        await_until(
            lambda: b"rdb_bgsave_in_progress:0" in redis(connection, "INFO", "persistence"), "Redis"
        )

    return {**disturb(plan, act, 0.2), "forks": forks}


class RedisFork(Redis):
    name = "redis_fork"
    about = "an INCR waits while Redis copies its page tables in fork for a snapshot"

    def setup(self) -> None:
        port = self.start_server()
        connection = dial(port)
        redis(connection, "DEBUG", "POPULATE", str(self.plan.whole(350, 450) * 1000), "k", "2600")
        self.victim = self.client("visits", increment, port)
        self.other = self.client("snapshots", snapshot, port, self.server.pid)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        other = self.other.result()
        # Redis reports the duration of the fork; its time is known if the command took no longer.
        forks = [
            (begin, end)
            for us, begin, end in other["forks"]
            if end - begin - us * 1000 < FORK_SLACK_NS
        ]
        culprit = Culprit("process", "redis-server", ["cpu_running"], self.server.pid)
        culprit.also = [other["pid"]]
        truth = self.held(self.victim.result(), "recvfrom", merged(forks), culprit)
        truth.notes["fork_us"] = [us for us, *_ in other["forks"]]
        return truth


def fetch(plan: WaitingPlan, port: int) -> dict[str, Any]:
    """A victim: reads a session from memcached."""
    connection = dial(port)
    connection.settimeout(None)

    def once() -> None:
        connection.sendall(b"get session:7\r\n")
        connection.recv(65536)

    connection.sendall(b"set session:7 0 0 4\r\nabcd\r\n")
    connection.recv(100)
    plan.wait()
    return repeat(plan, once, 0.007)


def stop(plan: WaitingPlan, pid: int, seconds: float) -> dict[str, Any]:
    """A hook that stops the server for a while, as a deployment does."""

    def act() -> None:
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            os.kill(pid, signal.SIGCONT)

    return disturb(plan, act, 0.2)


class MemcachedStopped(Served):
    name = "memcached_stopped"
    about = "a GET waits while another process has stopped memcached by a signal"
    packages: ClassVar[dict[str, str]] = {"memcached": "memcached"}

    def setup(self) -> None:
        port = free_port()
        words = ["memcached", "-u", "root", "-l", "127.0.0.1", "-p", port, "-U", "0", "-t", "2"]
        server = self.serve("memcached", words, port)
        self.victim = self.client("web", fetch, port)
        self.other = self.client("deploy-hook", stop, server.pid, self.plan.pick(0.15, 0.4))

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        other = self.other.result()
        names = ["signal_stop"]
        culprit = Culprit("process", "deploy-hook", names, other["pid"])
        culprit.middlemen = ["memcached"]
        return self.held(self.victim.result(), "recvfrom", other["spans"], culprit)


def put(plan: WaitingPlan, port: int) -> dict[str, Any]:
    """A victim: writes a key to etcd."""
    web = Web(port)
    key, value = (base64.b64encode(word).decode() for word in (b"leader", b"node-1"))
    body = json.dumps({"key": key, "value": value}).encode()
    web.fetch("/v3/kv/put", body)
    plan.wait()
    return repeat(plan, lambda: web.fetch("/v3/kv/put", body), 0.02)


def start_etcd(scenario: Served, folder: Path) -> int:
    """Starts a cluster of one member with its data in a folder; its port."""
    port, peer = free_port(), free_port()
    url, of_peers = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
    words = ["etcd", "--data-dir", folder / "etcd", "--listen-client-urls", url]
    words += ["--advertise-client-urls", url, "--listen-peer-urls", of_peers]
    words += ["--initial-advertise-peer-urls", of_peers, "--initial-cluster", f"default={of_peers}"]
    # A slow disk must not end its leadership.
    words += ["--heartbeat-interval", "500", "--election-timeout", "5000"]
    words += ["--log-level", "warn", "--logger", "zap"]
    scenario.serve("etcd", words, port)
    await_until(lambda: is_serving(port), "a leader of etcd")
    return port


class EtcdDisk(Served):
    name = "etcd_disk"
    about = "a put waits for etcd, whose log is on a disk that became slow"
    packages: ClassVar[dict[str, str]] = {"etcd": "etcd-server"}

    def setup(self) -> None:
        self.disk = self.lab.disk(400)
        options = ["-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", "-J", "size=4"]
        folder = self.lab.mount(self.disk, "ext4", *options)
        self.port = start_etcd(self, folder)
        self.delay_us = self.plan.whole(40, 110) * 1000
        self.victim = self.client("config", put, self.port)

    def begin_fault(self) -> None:
        self.disk.set(write_us=self.delay_us)

    def end_fault(self) -> None:
        self.disk.set(write_us=0)

    def truth(self, faults: list[Span]) -> Truth:
        names = ["block_service", "journal_wait", "misbehaving_disk", "io_wait"]
        culprit = Culprit("device", self.disk.name, names)
        culprit.middlemen = ["etcd"]
        culprit.near = ["jbd2/*", "slowfs", "kworker/*"]
        culprit.objects = [Thing("device", self.disk.name), Thing("any", ".wal")]
        truth = self.slowed(self.victim.result(), "recvfrom", faults, culprit)
        truth.notes["log_flush_s"] = flush_seconds(self.port)
        return truth


def flush_seconds(port: int) -> float:
    """The time that etcd has spent with flushes of its log."""
    for line in Web(port).fetch("/metrics").decode().splitlines():
        name, _, value = line.partition(" ")
        if name == "etcd_disk_wal_fsync_duration_seconds_sum":
            return float(value)
    raise RuntimeError("etcd has no metrics of its log")


def is_serving(port: int) -> bool:
    try:
        return b"header" in Web(port).fetch("/v3/kv/range", b'{"key":"AA=="}')
    except RuntimeError:
        return False


class RedisTraced(Redis):
    name = "redis_traced"
    about = "an INCR waits because strace delays the writes of Redis"
    packages: ClassVar[dict[str, str]] = {**REDIS, "strace": "strace"}

    def setup(self) -> None:
        port = self.start_server()
        self.delay_us = self.plan.whole(15, 60) * 1000
        self.victim = self.client("visits", increment, port)
        self.tracers: list[Any] = []

    def begin_fault(self) -> None:
        words = ["strace", "-f", "-o", self.lab.folder / "strace.txt", "-e", "trace=write"]
        words += ["-e", f"inject=write:delay_enter={self.delay_us}", "-p", self.server.pid]
        self.tracers.append(self.bystander(words))
        time.sleep(0.05)
        if self.tracers[-1].poll() is not None:
            raise UnavailableError("strace cannot attach")

    def end_fault(self) -> None:
        self.tracers[-1].send_signal(signal.SIGINT)
        self.tracers[-1].wait(10)

    def truth(self, faults: list[Span]) -> Truth:
        pids = [tracer.pid for tracer in self.tracers]
        culprit = Culprit("process", "strace", ["signal_stop"], pids[0])
        culprit.also, culprit.middlemen = pids[1:], ["redis-server"]
        return self.slowed(self.victim.result(), "recvfrom", faults, culprit)

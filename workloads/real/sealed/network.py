"""Two network namespaces: SYN packets that are dropped, and a shaped line that is full."""

from __future__ import annotations

import os
import socket
import time
from typing import Any, ClassVar

from faults.network import THERE, Net
from faults.plan import Span, overlap, repeat, undisturbed
from faults.truth import Culprit, Thing, Truth
from lab import run
from real.scenario import WaitingPlan
from real.sealed.kit import Served, Web, await_until
from real.sealed.stores import redis

NGINX = """
daemon off;
worker_processes 1;
user root;
pid @LAB@/nginx.pid;
error_log @LAB@/error.log;
events { worker_connections 64; }
http {
    access_log @LAB@/access.log;
    client_body_temp_path @LAB@/tmp1;
    proxy_temp_path @LAB@/tmp2;
    fastcgi_temp_path @LAB@/tmp3;
    uwsgi_temp_path @LAB@/tmp4;
    scgi_temp_path @LAB@/tmp5;
    server {
        listen @THERE@:80;
        location / { return 200 "ok"; }
    }
}
"""
SECOND = 1_000_000_000


class Distant(Served):
    """Servers in a network namespace of their own, clients in another."""

    def connect(self) -> None:
        self.net = Net(self.lab)

    def serve_there(self, words: list[Any]) -> int:
        return self.stack.start(["ip", "netns", "exec", self.net.names[1], *words]).pid


class SynDropped(Distant):
    name = "syn_dropped"
    about = "a connect waits for a second because a firewall drops some SYN packets of the client"
    packages: ClassVar[dict[str, str]] = {"nginx": "nginx-light", "nft": "nftables"}
    on = (2.2, 2.8)
    rounds = 3

    def setup(self) -> None:
        self.connect()
        self.net.filter()
        config = self.log("nginx.conf")
        text = NGINX.replace("@LAB@", str(self.lab.folder)).replace("@THERE@", THERE)
        config.write_text(text)
        self.serve_there(["nginx", "-c", config])
        share = self.plan.whole(15, 35)
        self.rule = f"tcp dport 80 tcp flags syn numgen random mod 100 < {share} counter drop"
        self.victim = self.net.start("shopper", 0, call_there, self.plan)

    def begin_fault(self) -> None:
        self.net.nft(f"add rule ip lab in {self.rule}")

    def end_fault(self) -> None:
        self.net.clear()

    def truth(self, faults: list[Span]) -> Truth:
        result = self.victim.result()
        culprit = Culprit("peer", THERE, ["network_retransmit"])
        culprit.objects = [Thing("peer", f"{THERE}:80")]
        truth = Truth(self.plan, faults, [culprit])
        usual = undisturbed(result["spans"], faults)
        for begin, end in result["spans"]:
            # The next SYN is sent after a second, even if the firewall is open by then.
            is_lost = end - begin > SECOND // 2 and overlap((begin, end), faults)
            blame = end - begin - usual if is_lost else 0
            truth.add(result, "connect", (begin, end), [blame])
        return truth


def call_there(plan: WaitingPlan) -> dict[str, Any]:
    """The victim: a new connection for each request."""

    def once() -> None:
        web = Web(80, THERE, "Connection: close\r\n")
        web.fetch("/")
        web.close()

    await_until(lambda: once() is None, "nginx")
    plan.wait()
    return repeat(plan, once, 0.02)


class FullLine(Distant):
    name = "shaped_upload"
    about = "an INCR of Redis on another host waits behind an upload in the queue of a slow line"
    packages: ClassVar[dict[str, str]] = {"redis-server": "redis-server", "tc": "iproute2"}

    def setup(self) -> None:
        self.connect()
        words = ["redis-server", "--port", "6379", "--bind", THERE, "--protected-mode", "no"]
        self.serve_there([*words, "--save", "", "--dir", self.lab.folder])
        shape = f"rate {self.plan.whole(15, 30)}mbit burst 64k limit 4m"
        here = self.net.names[0]
        run("tc", "-n", here, *f"qdisc add dev cable root tbf {shape}".split())
        self.sink = self.net.start("backup-sink", 1, receive, self.plan)
        self.victim = self.net.start("cart", 0, count_there, self.plan)
        self.other = self.net.start("uploader", 0, upload, self.plan, 6)

    def truth(self, faults: list[Span]) -> Truth:
        victim, other = self.victim.result(), self.other.result()
        sink = self.sink.result()
        names = ["send_delayed", "network_retransmit"]
        culprit = Culprit("process", "uploader", names, other["pid"])
        culprit.also = [sink["pid"]]
        culprit.objects = [Thing("peer", THERE), Thing("any", "cable")]
        # The queue is drained some time after the upload has ended.
        drained = [(begin, end + 400_000_000) for begin, end in other["uploads"]]
        return self.slowed(victim, "recvfrom", drained, culprit)


def count_there(plan: WaitingPlan) -> dict[str, Any]:
    def connected() -> socket.socket:
        return socket.create_connection((THERE, 6379), 2)

    connection = await_until(connected, "Redis")
    connection.settimeout(None)
    redis(connection, "INCR", "visits")
    plan.wait()
    return repeat(plan, lambda: redis(connection, "INCR", "visits"), 0.01)


def receive(plan: WaitingPlan) -> dict[str, Any]:
    """Reads from all connections until the end of the plan."""
    server = socket.create_server((THERE, 7200), backlog=64)
    server.setblocking(False)
    open_ones: list[socket.socket] = []
    plan.wait()
    while not plan.is_over():
        try:
            open_ones.append(server.accept()[0])
            open_ones[-1].setblocking(False)
        except BlockingIOError:
            time.sleep(0.002)
        for one in open_ones:
            try:
                while one.recv(1 << 18):
                    pass
            except (BlockingIOError, ConnectionResetError):
                continue
    return {"pid": os.getpid()}


def upload(plan: WaitingPlan, count: int) -> dict[str, Any]:
    """Sends over several connections while the fault should be active."""
    plan.wait()
    uploads, part = [], b"u" * (1 << 16)
    for begin, end in plan.windows:
        while time.monotonic_ns() < begin:
            time.sleep(0.005)
        start = time.monotonic_ns()
        lines = [socket.create_connection((THERE, 7200)) for _ in range(count)]
        for line in lines:
            line.setblocking(False)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 18)
        while time.monotonic_ns() < end:
            for line in lines:
                try:
                    line.send(part)
                except BlockingIOError:
                    continue
            time.sleep(0.002)
        for line in lines:
            # Drops what has not been sent.
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            line.close()
        uploads.append((start, time.monotonic_ns()))
    return {"pid": os.getpid(), "uploads": uploads}

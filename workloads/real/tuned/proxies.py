"""Servers behind a proxy, and pools of workers that are all busy."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any, ClassVar

from faults.plan import Span, myself
from faults.truth import Culprit, Thing, Truth
from real import http, servers
from real.priority import prefer
from real.scenario import Scenario, WaitingPlan
from web.stack import free_port

SLEEPS = ["timer_sleep", "producer_idle"]


class _Pages(Scenario):
    """A victim fetches cheap pages; the process `reports` fetches expensive ones."""

    # Requests of the expensive page at a time.
    count: ClassVar[int] = 1

    def start_clients(self, port: int, cheap: str, expensive: str, new: bool = False) -> None:
        fetch = http.fetch_anew if new else http.fetch
        self.victim = self.client("browser", fetch, port, cheap, 0.01)
        self.reports = self.client("reports", http.press, port, expensive, 0.12, self.count)

    def inject(self) -> list[Span]:
        return self.plan.switch(lambda: None, lambda: None)

    def of_server(self, name: str, pid: int, mechanisms: list[str]) -> Culprit:
        culprit = Culprit("process", name, mechanisms, pid, with_children=True)
        culprit.also = [self.reports.pid]
        culprit.objects = [Thing("any", "reports"), Thing("any", "report")]
        return culprit


class NginxNodeLoop(_Pages):
    name = "nginx_node_loop"
    about = "a page waits behind nginx for a Node event loop that computes a report"
    packages: ClassVar[dict[str, str]] = {"nginx": "nginx-light", "node": "nodejs"}

    def setup(self) -> None:
        self.log = self.lab.folder / "reports.log"
        self.node, port = servers.node(self.stack, "shop.js", self.log)
        self.nginx = servers.Nginx(self.stack, servers.proxied(port))
        ms = self.plan.whole(120, 320)
        self.start_clients(self.nginx.port, "/", f"/report?ms={ms}")

    def truth(self, faults: list[Span]) -> Truth:
        victim = self.victim.result()
        self.reports.result()
        culprit = self.of_server("node", self.node.pid, ["cpu_running"])
        culprit.middlemen = ["nginx"]
        return self.held(victim, "recvfrom", http.spans_of(self.log), culprit)


class GunicornPool(_Pages):
    name = "gunicorn_pool"
    about = "a page waits in the listen queue because both gunicorn workers serve slow reports"
    packages: ClassVar[dict[str, str]] = {"gunicorn": "gunicorn"}
    count = 2

    def setup(self) -> None:
        self.server, port = servers.gunicorn(self.stack, 2)
        ms = self.plan.whole(200, 400)
        self.start_clients(port, "/", f"/report?ms={ms}", new=True)

    def truth(self, faults: list[Span]) -> Truth:
        victim, reports = self.victim.result(), self.reports.result()
        busy = http.held_by_all([reports["spans"]], 2)
        culprit = self.of_server("gunicorn", self.server.pid, SLEEPS)
        return self.slowed(victim, "recvfrom", busy, culprit)


def upload(plan: WaitingPlan, port: int, pause: float, count: int) -> dict[str, Any]:
    """The culprit: a client on a bad line, whose requests arrive in pieces, `count` at a time."""
    spans: list[Span] = []

    def once() -> None:
        with socket.create_connection(("127.0.0.1", port), http.TIMEOUT_SECONDS) as line:
            begin = time.monotonic_ns()
            line.sendall(b"POST /photo HTTP/1.1\r\nHost: shop\r\n")
            for piece in (b"Content-Type: text/plain\r\n", b"Connection: close\r\n"):
                time.sleep(pause)
                line.sendall(piece)
            time.sleep(pause)
            line.sendall(b"Content-Length: 4\r\n\r\ndone")
            while line.recv(4096):
                pass
            spans.append((begin, time.monotonic_ns()))

    def work() -> None:
        while not plan.is_over():
            if plan.is_on():
                once()
            time.sleep(0.05)

    plan.wait()
    others = [threading.Thread(target=work) for _ in range(1, count)]
    for other in others:
        other.start()
    work()
    for other in others:
        other.join()
    return {**myself(), "spans": spans}


class SlowUploads(Scenario):
    name = "slow_uploads"
    about = "a page waits because both gunicorn workers wait for the rest of slow clients' requests"
    packages: ClassVar[dict[str, str]] = {"gunicorn": "gunicorn"}

    def setup(self) -> None:
        self.server, port = servers.gunicorn(self.stack, 2)
        self.victim = self.client("browser", http.fetch_anew, port, "/", 0.01)
        self.phones = self.client("phones", upload, port, self.plan.pick(0.06, 0.12), 2)

    def inject(self) -> list[Span]:
        return self.plan.switch(lambda: None, lambda: None)

    def truth(self, faults: list[Span]) -> Truth:
        victim, phones = self.victim.result(), self.phones.result()
        culprit = Culprit("process", "phones", SLEEPS, self.phones.pid)
        culprit.middlemen = ["gunicorn"]
        culprit.objects = [Thing("any", "phones")]
        busy = http.held_by_all([phones["spans"]], 2)
        return self.slowed(victim, "recvfrom", busy, culprit)


class PhpPool(_Pages):
    name = "php_fpm_pool"
    about = "a page waits behind nginx because all PHP-FPM children serve slow reports"
    packages: ClassVar[dict[str, str]] = {
        "nginx": "nginx-light",
        "/usr/sbin/php-fpm*": "php-fpm",
    }
    count = 2

    def setup(self) -> None:
        self.php = servers.Php(self.stack, 2)
        nginx = servers.Nginx(self.stack, self.php.location)
        ms = self.plan.whole(200, 400)
        self.start_clients(nginx.port, "/fast.php", f"/report.php?ms={ms}")

    def truth(self, faults: list[Span]) -> Truth:
        victim, reports = self.victim.result(), self.reports.result()
        busy = http.held_by_all([reports["spans"]], 2)
        culprit = self.of_server("php-fpm", self.php.child.pid, SLEEPS)
        culprit.middlemen = ["nginx"]
        return self.slowed(victim, "recvfrom", busy, culprit)


class HaproxyQueue(_Pages):
    name = "haproxy_queue"
    about = (
        "a page waits in the queue of HAProxy, whose only connection to the application is in use"
    )
    packages: ClassVar[dict[str, str]] = {"haproxy": "haproxy", "gunicorn": "gunicorn"}

    def setup(self) -> None:
        self.server, port = servers.gunicorn(self.stack, 1)
        front, folder = free_port(), self.lab.folder
        (folder / "haproxy.cfg").write_text(
            "global\n    maxconn 200\n"
            "defaults\n    mode http\n    timeout connect 5s\n    timeout client 60s\n"
            "    timeout server 60s\n    timeout queue 60s\n"
            f"listen shop\n    bind 127.0.0.1:{front}\n"
            f"    server app 127.0.0.1:{port} maxconn 1\n"
        )
        child = self.stack.start(["haproxy", "-db", "-f", folder / "haproxy.cfg"])
        self.stack.await_port(child, front, "HAProxy")
        ms = self.plan.whole(150, 350)
        self.start_clients(front, "/", f"/report?ms={ms}")

    def truth(self, faults: list[Span]) -> Truth:
        victim, reports = self.victim.result(), self.reports.result()
        culprit = self.of_server("gunicorn", self.server.pid, SLEEPS)
        culprit.middlemen = ["haproxy"]
        return self.slowed(victim, "recvfrom", http.merged(reports["spans"]), culprit)


class QuotaOfService(Scenario):
    name = "quota_of_service"
    about = "a page waits for gunicorn, whose control group has used up its CPU quota"
    packages: ClassVar[dict[str, str]] = {"gunicorn": "gunicorn"}

    def setup(self) -> None:
        from throttled import Group

        self.group = Group(self.lab)
        self.group.limit(None)
        prefer(self.group.path)
        self.server, port = servers.gunicorn(self.stack, 1)
        self.workers = servers.children_of(self.server.pid)
        for pid in [self.server.pid, *self.workers]:
            (self.group.path / "cgroup.procs").write_text(str(pid))
        self.limit_us = self.plan.whole(9, 16) * 1000
        path = f"/sum?ms={self.plan.whole(6, 11)}"
        self.victim = self.client("browser", http.fetch_anew, port, path, 0.015)

    def begin_fault(self) -> None:
        self.group.limit(self.limit_us)

    def end_fault(self) -> None:
        self.group.limit(None)

    def truth(self, faults: list[Span]) -> Truth:
        victim: dict[str, Any] = self.victim.result()
        culprit = Culprit("cgroup", self.group.path.name, ["cpu_throttled"])
        # The limit of the server is the answer, together with the mechanism.
        culprit.also = [self.server.pid, *self.workers]
        culprit.objects = [Thing("cgroup", self.group.path.name)]
        truth = self.slowed(victim, "recvfrom", faults, culprit)
        truth.notes.update(self.group.stat())
        return truth

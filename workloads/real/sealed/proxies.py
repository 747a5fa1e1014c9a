"""Apache with occupied workers or a slow log, nginx before a slow FUSE."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, ClassVar

from faults.plan import Span, myself, repeat
from faults.truth import Culprit, Thing, Truth
from lab import UnavailableError
from real.scenario import WaitingPlan
from real.sealed.kit import (
    PROGRAMS,
    Served,
    Web,
    browse,
    dial,
    disturb,
    request_often,
    spans_of,
    stamped,
    visit,
)
from web.stack import PYTHON, free_port

APACHE = """
ServerRoot @LAB@
ServerName localhost
PidFile @LAB@/apache.pid
Mutex file:@LAB@
Listen 127.0.0.1:@PORT@
User www-data
Group www-data
LoadModule mpm_prefork_module /usr/lib/apache2/modules/mod_mpm_prefork.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule env_module /usr/lib/apache2/modules/mod_env.so
StartServers @WORKERS@
ServerLimit @WORKERS@
MinSpareServers 1
MaxSpareServers @WORKERS@
MaxRequestWorkers @WORKERS@
KeepAlive @KEEP@
MaxKeepAliveRequests 0
KeepAliveTimeout 30
DocumentRoot @LAB@/site
ErrorLog @LAB@/error.log
LogFormat "%h %t \\"%r\\" %>s %D %{X-Trace}i" long
@LOG@
"""


class Apache(Served):
    packages: ClassVar[dict[str, str]] = {"apache2": "apache2"}

    def start_server(self, workers: int, keep: str, log: str) -> int:
        port = free_port()
        site = self.lab.folder / "site"
        site.mkdir()
        (site / "page").write_text("ok\n" * 100)
        places = {"LAB": self.lab.folder, "PORT": port, "WORKERS": workers, "KEEP": keep}
        text = APACHE.replace("@LOG@", log)
        for name, value in places.items():
            text = text.replace(f"@{name}@", str(value))
        config = self.log("apache.conf")
        config.write_text(text)
        self.lab.folder.chmod(0o711)
        self.server = self.serve("Apache", ["apache2", "-DFOREGROUND", "-f", config], port)
        return port


def crawl(plan: WaitingPlan, port: int, seconds: float) -> dict[str, Any]:
    """A client on a bad line: the end of its request comes late."""

    def act() -> None:
        connection = dial(port)
        connection.sendall(b"GET /page HTTP/1.1\r\nHost: local")
        time.sleep(seconds)
        connection.sendall(b"host\r\nConnection: close\r\n\r\n")
        while connection.recv(65536):
            pass
        connection.close()

    return disturb(plan, act, 0.1)


class ApacheSlowClients(Apache):
    name = "apache_slow_clients"
    about = "a request waits because slow clients occupy all workers of Apache"

    def setup(self) -> None:
        port = self.start_server(2, "Off", "CustomLog @LAB@/access.log long")
        self.victim = self.client("shopper", visit, port, "/page")
        seconds = self.plan.pick(0.3, 0.6)
        self.others = [self.client("crawler", crawl, port, seconds) for _ in range(2)]

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        others = [other.result() for other in self.others]
        both = [
            (max(begin, start), min(end, stop))
            for begin, end in others[0]["spans"]
            for start, stop in others[1]["spans"]
            if max(begin, start) < min(end, stop)
        ]
        names = ["producer_idle", "timer_sleep"]
        culprit = Culprit("process", "crawler", names, others[0]["pid"])
        culprit.also, culprit.middlemen = [others[1]["pid"]], ["apache2"]
        return self.held(self.victim.result(), "recvfrom", both, culprit)


class ApachePipedLog(Apache):
    name = "apache_piped_log"
    about = "a request waits because Apache's log pipe is full while its reader compresses"

    def setup(self) -> None:
        self.flag = self.log("compress")
        rounds = self.plan.whole(5, 9)
        script = f"{PYTHON} {PROGRAMS}/ship.py {self.flag} {self.log('ship.log')} {rounds}"
        port = self.start_server(1, "On", f'CustomLog "|{script}" long')
        self.victim = self.client("shopper", request_traced, port)

    def begin_fault(self) -> None:
        self.flag.touch()

    def end_fault(self) -> None:
        self.flag.unlink()

    def truth(self, faults: list[Span]) -> Truth:
        rows = stamped(self.log("ship.log"), "compress")
        if not rows:
            raise RuntimeError("the reader of the log did not compress")
        culprit = Culprit("process", "logship", ["pipe_wait", "cpu_running"], rows[0][0][0])
        culprit.middlemen = ["apache2"]
        return self.slowed(self.victim.result(), "recvfrom", faults, culprit)


def request_traced(plan: WaitingPlan, port: int) -> dict[str, Any]:
    """A victim whose requests have a long header that Apache logs."""
    web = Web(port, headers=f"X-Trace: {'t' * 3500}\r\n")
    web.fetch("/page")
    plan.wait()
    return repeat(plan, lambda: web.fetch("/page"), 0.006)


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
    sendfile off;
    output_buffers 1 128k;
    keepalive_requests 1000000;
    server {
        listen 127.0.0.1:@PORT@;
        location / { root @LAB@/site; }
        location /archive/ { alias @ARCHIVE@/; }
    }
}
"""


class NginxFuse(Served):
    name = "nginx_fuse"
    about = "a page waits while nginx reads a file for another client from a FUSE that is late"
    packages: ClassVar[dict[str, str]] = {"nginx": "nginx-light"}

    def setup(self) -> None:
        self.disk = self.lab.disk(1)
        archive = self.lab.folder / "slow1"
        site = self.lab.folder / "site"
        site.mkdir()
        (site / "page").write_text("ok\n" * 100)
        port = free_port()
        text = NGINX.replace("@LAB@", str(self.lab.folder)).replace("@PORT@", str(port))
        config = self.log("nginx.conf")
        config.write_text(text.replace("@ARCHIVE@", str(archive)))
        self.serve("nginx", ["nginx", "-c", config], port)
        self.daemon = pid_of_slowfs(archive)
        self.delay_us = self.plan.whole(25, 70) * 1000
        self.victim = self.client("shopper", browse, port, "/page")
        self.other = self.client("archivist", request_often, port, "/archive/disk", 0.08)

    def begin_fault(self) -> None:
        self.disk.set(read_us=self.delay_us)

    def end_fault(self) -> None:
        self.disk.set(read_us=0)

    def truth(self, faults: list[Span]) -> Truth:
        other = self.other.result()
        names = ["kernel_wait", "timer_sleep", "io_wait"]
        culprit = Culprit("process", "slowfs", names, self.daemon)
        culprit.also, culprit.middlemen = [other["pid"]], ["nginx"]
        culprit.objects = [Thing("file", str(self.lab.folder / "slow1/disk"))]
        return self.slowed(self.victim.result(), "recvfrom", faults, culprit)


def pid_of_slowfs(folder: Path) -> int:
    """The daemon of a slow disk: a child of this process."""
    for pid in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split():
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if words[0].endswith(b"slowfs") and str(folder).encode() in words:
            return int(pid)
    raise UnavailableError("the daemon of the FUSE file system has ended")


class UnixQueue(Served):
    name = "unix_queue"
    about = "a connect to a unix socket waits: the queue is full while a Ruby server computes"
    packages: ClassVar[dict[str, str]] = {"ruby": "ruby"}

    def setup(self) -> None:
        path = str(self.lab.folder / "shop.sock")
        words = ["ruby", PROGRAMS / "shop.rb", f"unix:{path}", "backlog=1", "single"]
        self.app = self.stack.start([*words, f"log={self.log('shop.log')}"]).pid
        deadline = time.monotonic() + 20
        while not os.path.exists(path):
            if time.monotonic() > deadline:
                raise UnavailableError("Ruby did not start")
            time.sleep(0.05)
        time.sleep(0.2)
        report = f"/report?ms={self.plan.whole(150, 320)}"
        self.victim = self.client("shopper", visit, path, "/page")
        self.fillers = [self.client("visitor", fill, path) for _ in range(3)]
        self.other = self.client("auditor", visit_on, path, report, 0.15)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        other = self.other.result()
        for filler in self.fillers:
            filler.result()
        culprit = Culprit("process", "ruby", ["cpu_running"], self.app)
        culprit.also = [other["pid"]]
        holds = spans_of(self.log("shop.log"), "report")
        return self.held(self.victim.result(), "connect", holds, culprit)


def visit_on(plan: WaitingPlan, path: str, page: str, gap: float) -> dict[str, Any]:
    """A client with a new connection for each request, while the fault should be active."""

    def act() -> None:
        web = Web(path, headers="Connection: close\r\n")
        web.fetch(page)
        web.close()

    return disturb(plan, act, gap)


def fill(plan: WaitingPlan, path: str) -> dict[str, Any]:
    plan.wait()
    visit_on(plan, path, "/page", 0.004)
    return myself()

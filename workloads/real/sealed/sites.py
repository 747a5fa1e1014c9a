"""Web sites: sessions of PHP, a console, a deployment, a virus scanner, and uploads."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import random
import select
import shutil
import struct
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

import watchdog
from faults.plan import SECOND, Span, repeat
from faults.truth import Culprit, Thing, Truth
from lab import LIBC, Lab, UnavailableError, run
from real.scenario import WaitingPlan
from real.sealed.kit import (
    PROGRAMS,
    Served,
    Web,
    await_until,
    browse,
    children_of,
    dial,
    disturb,
    merged,
    spans_of,
)
from web.stack import free_port, user

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
    keepalive_requests 1000000;
    @MORE@
    server {
        listen 127.0.0.1:@PORT@;
        @LOCATIONS@
    }
}
"""
FPM = """
[global]
error_log = @LAB@/fpm.log
daemonize = no
[pages]
user = www-data
group = www-data
listen = 127.0.0.1:@PAGES@
pm = static
pm.max_children = 2
[summaries]
user = www-data
group = www-data
listen = 127.0.0.1:@SUMMARIES@
pm = static
pm.max_children = 1
"""
NO_FILE = subprocess.DEVNULL
CART = "Cookie: cart=c0ffee42\r\n"


def start_nginx(scenario: Served, locations: str, more: str = "") -> int:
    port, config = free_port(), scenario.log("nginx.conf")
    text = NGINX.replace("@LOCATIONS@", locations).replace("@MORE@", more)
    text = text.replace("@PORT@", str(port))
    config.write_text(text.replace("@LAB@", str(scenario.lab.folder)))
    scenario.serve("nginx", ["nginx", "-c", config, "-e", scenario.log("error.log")], port)
    return port


class PhpSession(Served):
    name = "php_session"
    about = "a page waits for the lock of its PHP session, which a summary in another tab holds"
    packages: ClassVar[dict[str, str]] = {
        "nginx": "nginx-light",
        "/usr/sbin/php-fpm*": "php-fpm",
    }

    def setup(self) -> None:
        port = self.start_site()
        path = f"/summary/cart.php?ms={self.plan.whole(180, 400)}"
        self.victim = self.client("shopper", open_cart, port, "/cart.php")
        self.other = self.client("second-tab", summarize, port, path)

    def start_site(self) -> int:
        owner = user("www-data")
        pages = self.stack.folder("pages", owner)
        self.stack.folder("sessions", owner, pages)
        shutil.copy(PROGRAMS / "cart.php", pages / "cart.php").chmod(0o644)
        ports = {"PAGES": free_port(), "SUMMARIES": free_port(), "LAB": self.lab.folder}
        text, locations = FPM, ""
        for name, value in ports.items():
            text = text.replace(f"@{name}@", str(value))
        for path, name in (("/", "PAGES"), ("/summary/", "SUMMARIES")):
            locations += (
                f"location {path} {{ include /etc/nginx/fastcgi_params;"
                f"fastcgi_param SCRIPT_FILENAME {pages}/cart.php;"
                f"fastcgi_pass 127.0.0.1:{ports[name]}; }}\n"
            )
        config = self.log("fpm.conf")
        config.write_text(text)
        program = max(Path("/usr/sbin").glob("php-fpm*"))
        words = [program, "--nodaemonize", "--fpm-config", config]
        server = self.serve("PHP-FPM", words, ports["SUMMARIES"])
        children = children_of(server.pid)
        self.comm = program.name[:15]
        self.holder = next(pid for pid, words in children if words.endswith("summaries"))
        return start_nginx(self, locations)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        other = self.other.result()
        log = self.lab.folder / "pages/cart.log"
        names = ["cpu_running", "lock_file"]
        culprit = Culprit("process", self.comm, names, self.holder)
        culprit.also, culprit.middlemen = [other["pid"]], ["nginx", "php-fpm*"]
        culprit.objects = [Thing("any", "sess_c0ffee42"), Thing("any", "summary")]
        return self.held(self.victim.result(), "recvfrom", spans_of(log, "summary"), culprit)


def open_cart(plan: WaitingPlan, port: int, path: str) -> dict[str, Any]:
    """The victim: a page of a visitor, on a connection that exists already."""
    web = Web(port, headers=CART)
    web.fetch(path)
    plan.wait()
    return repeat(plan, lambda: web.fetch(path), 0.01)


def summarize(plan: WaitingPlan, port: int, path: str) -> dict[str, Any]:
    """The same visitor in another tab."""
    web = Web(port, headers=CART)
    return disturb(plan, lambda: web.fetch(path), 0.15)


class Console(Served):
    name = "node_console"
    about = "a page waits for Node, which logs to a terminal that does not read for a while"
    packages: ClassVar[dict[str, str]] = {"node": "nodejs"}

    def setup(self) -> None:
        screen, console = os.openpty()
        port = free_port()
        words = ["node", PROGRAMS / "site.js", port, self.log("site.txt"), "verbose"]
        self.terminal = self.client("terminal", show, screen, self.plan.pick(0.15, 0.35))
        self.serve("Node", words, port, stdout=console)
        os.close(console)
        self.victim = self.client("shopper", open_page, port)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        victim, other = self.victim.result(), self.terminal.result()
        culprit = Culprit("process", "terminal", ["cpu_running"], other["pid"])
        culprit.middlemen = ["node"]
        culprit.objects = [Thing("any", "/dev/pts"), Thing("any", "/dev/ptmx")]
        return self.held(victim, "recvfrom", other["spans"], culprit)


def open_page(plan: WaitingPlan, port: int) -> dict[str, Any]:
    """The victim: requests with a header that the server logs."""
    web = Web(port, headers=f"X-Trace: {'t' * 2500}\r\n")
    web.fetch("/page")
    plan.wait()
    return repeat(plan, lambda: web.fetch("/page"), 0.006)


def follow(plan: WaitingPlan) -> None:
    """Learns the schedule in another thread, because this one has work before it begins."""
    threading.Thread(target=plan.wait, daemon=True).start()


def is_needed(plan: WaitingPlan) -> bool:
    """Until the last operation of the victim has ended."""
    return plan.until == 0 or time.monotonic_ns() < plan.until + SECOND


def show(plan: WaitingPlan, screen: int, seconds: float) -> dict[str, Any]:
    """A terminal that shows what arrives, and now and then searches its history."""
    spans, history = [], [b""] * 200
    resume = 0
    follow(plan)
    while is_needed(plan):
        if select.select([screen], [], [], 0.02)[0]:
            history = [*history[1:], os.read(screen, 65536)]
        if plan.is_on() and time.monotonic_ns() > resume:
            begin = time.monotonic_ns()
            while time.monotonic_ns() < begin + seconds * SECOND:
                sum(part.count(b"timeout") for part in history)
            spans.append((begin, time.monotonic_ns()))
            resume = spans[-1][1] + SECOND // 5
    return {"pid": os.getpid(), "spans": spans}


class Deployment(Served):
    name = "node_deployment"
    about = "a client retries its connect while a deployment restarts Node, which loads its data"
    packages: ClassVar[dict[str, str]] = {"node": "nodejs"}

    def setup(self) -> None:
        port, catalogue = free_port(), self.log("catalogue.json")
        items = [
            {"id": number, "name": f"item {number}", "price": number % 997, "tags": ["new", "sale"]}
            for number in range(self.plan.whole(150, 350) * 1000)
        ]
        catalogue.write_text(json.dumps(items))
        log = self.log("site.txt")
        words = ["node", PROGRAMS / "site.js", port, log, f"catalogue={catalogue}"]
        self.port, self.catalogue = port, catalogue
        self.other = self.client("deployer", deploy, self.lab, port, [str(word) for word in words])
        await_until(lambda: dial(port).close() is None, "Node")
        self.pause_s = self.plan.pick(0.01, 0.03)
        self.victim = self.client("shopper", visit_again, port, self.pause_s)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        victim, other = self.victim.result(), self.other.result()
        names = ["polling", "cpu_running", "timer_sleep"]
        culprit = Culprit("process", "node", names, other["servers"][0])
        culprit.also = [*other["servers"][1:], other["pid"]]
        culprit.objects = [Thing("peer", f"127.0.0.1:{self.port}")]
        culprit.objects.append(Thing("file", str(self.catalogue)))
        # The pause before the last attempt has the same cause.
        pause_ns = int(self.pause_s * SECOND)
        spans = merged([(begin, end + pause_ns) for begin, end in other["spans"]])
        return self.slowed(victim, "clock_nanosleep", spans, culprit)


def visit_again(plan: WaitingPlan, port: int, pause: float) -> dict[str, Any]:
    """The victim: a new connection for each page; repeats a request that fails."""
    plan.wait()

    def once() -> None:
        while True:
            try:
                web = Web(port, headers="Connection: close\r\n")
                web.fetch("/page")
                web.close()
                return
            except (OSError, RuntimeError):
                time.sleep(pause)

    return repeat(plan, once, 0.012)


def deploy(plan: WaitingPlan, lab: Lab, port: int, words: list[str]) -> dict[str, Any]:
    """Restarts the server while the fault should be active."""
    servers = []

    def start() -> None:
        servers.append(subprocess.Popen(words, stdin=NO_FILE, stdout=NO_FILE))
        lab.will_undo("process", servers[-1].pid, watchdog.start_of(servers[-1].pid))

    def restart() -> None:
        servers[-1].terminate()
        servers[-1].wait()
        start()
        await_until(lambda: dial(port).close() is None, "Node")

    start()
    result = disturb(plan, restart, 0.4)
    time.sleep(0.5)
    servers[-1].terminate()
    servers[-1].wait()
    return {**result, "servers": [server.pid for server in servers]}


FAN_CLASS_CONTENT, FAN_CLOEXEC = 4, 1
FAN_MARK_ADD, FAN_MARK_FILESYSTEM = 1, 0x100
FAN_OPEN_PERM, FAN_ALLOW = 0x10000, 1
AT_FDCWD = -100
EVENT = struct.Struct("=IBBHQii")


class Scanner(Served):
    name = "nginx_scanner"
    about = "a page waits while a virus scanner examines the file that nginx opens"
    packages: ClassVar[dict[str, str]] = {"nginx": "nginx-light"}

    def setup(self) -> None:
        site = self.lab.folder / "site"
        site.mkdir()
        self.lab.will_undo("mount", str(site))
        run("mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", site)
        (site / "page").write_bytes(os.urandom(1 << 17))
        self.page = site / "page"
        port = start_nginx(self, f"location / {{ root {site}; }}")
        self.scanner = self.client("scand", scan, site, self.plan.whole(150, 400))
        self.victim = self.client("shopper", browse, port, "/page", 0.012)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        victim, other = self.victim.result(), self.scanner.result()
        names = ["cpu_running", "kernel_wait"]
        culprit = Culprit("process", "scand", names, other["pid"])
        culprit.middlemen, culprit.objects = ["nginx"], [Thing("file", str(self.page))]
        return self.held(victim, "recvfrom", other["spans"], culprit)


def scan(plan: WaitingPlan, folder: Path, rounds: int) -> dict[str, Any]:
    """Examines each file that is opened; thoroughly while the fault should be active."""
    events = LIBC.fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, os.O_RDONLY)
    flags, mask = FAN_MARK_ADD | FAN_MARK_FILESYSTEM, ctypes.c_uint64(FAN_OPEN_PERM)
    place = os.fsencode(folder)
    if events < 0 or LIBC.fanotify_mark(events, flags, mask, AT_FDCWD, place) != 0:
        raise UnavailableError("fanotify cannot supervise a file system")
    spans = []
    follow(plan)
    while is_needed(plan):
        if not select.select([events], [], [], 0.05)[0]:
            continue
        begin = time.monotonic_ns()
        for _, _, _, _, _, file, _ in EVENT.iter_unpack(os.read(events, EVENT.size)):
            is_thorough = plan.is_on()
            data = os.pread(file, 1 << 20, 0)
            for number in range(rounds if is_thorough else 1):
                hashlib.sha256(data + bytes([number % 256])).digest()
            os.write(events, struct.pack("=iI", file, FAN_ALLOW))
            os.close(file)
            if is_thorough:
                spans.append((begin, time.monotonic_ns()))
    return {"pid": os.getpid(), "spans": spans}


class NullUploads(Served):
    name = "null_paced_uploads"
    about = "uploads of different sizes to Node, from one client that limits its own rate"
    packages: ClassVar[dict[str, str]] = {"node": "nodejs"}
    is_null = True

    def setup(self) -> None:
        port = free_port()
        words = ["node", PROGRAMS / "site.js", port, self.log("site.txt")]
        self.serve("Node", words, port)
        seed = self.plan.seed
        self.victim = self.client("sync", upload_paced, port, seed, self.plan.whole(8, 16))
        self.other = self.client("camera", upload, port, seed + 1)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        self.other.result()
        return self.steady(self.victim.result(), "recvfrom")


def upload_paced(plan: WaitingPlan, port: int, seed: int, mib_per_s: int) -> dict[str, Any]:
    """The victim: sends parts of 64 KiB, and sleeps as long as its rate requires."""
    web, dice, part = Web(port), random.Random(seed), b"u" * 65536
    plan.wait()

    def once() -> None:
        parts = dice.choice([1, 1, 2, 4, 16, 40])
        head = f"POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: {parts * len(part)}"
        web.connection.sendall(f"{head}\r\n\r\n".encode())
        for _ in range(parts):
            web.connection.sendall(part)
            time.sleep(1 / 16 / mib_per_s)
        web.answer()

    return repeat(plan, once, 0.03)


def upload(plan: WaitingPlan, port: int, seed: int) -> dict[str, Any]:
    """Sends pictures of very different size."""
    web, dice = Web(port), random.Random(seed)
    plan.wait()
    sizes = [1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 21]
    return repeat(plan, lambda: web.fetch("/upload", b"p" * dice.choice(sizes)), 0.05)

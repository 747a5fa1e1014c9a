"""Faults of other kinds: a rate limit, a semaphore and a heap dump."""

from __future__ import annotations

import random
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any, ClassVar

from faults.plan import MS, Span, myself
from faults.truth import Culprit, Thing, Truth
from lab import run
from real.scenario import WaitingPlan
from real.sealed.kit import (
    PROGRAMS,
    Served,
    Web,
    browse,
    children_of,
    disturb,
    merged,
    request_lines,
    request_often,
    spans_of,
    threads_named,
)
from real.sealed.quiet_services import JAVA
from real.sealed.sites import FPM, start_nginx
from real.tuned.runtimes import safepoints
from web.stack import free_port, user

# What nginx logs with each request: its end in s, its duration, and whether it was delayed.
LIMITS = (
    "limit_req_zone $server_port zone=site:1m rate=@RATE@r/s;"
    "log_format limits '$uri $msec $request_time $limit_req_status';"
)


class RateLimit(Served):
    name = "nginx_rate_limit"
    about = "a page is delayed by the rate limit of nginx, which a crawler exhausts"
    packages: ClassVar[dict[str, str]] = {"nginx": "nginx-light"}

    def setup(self) -> None:
        site = self.log("site")
        site.mkdir()
        for name in ("page", "list"):
            (site / name).write_text(f"{name}\n" * 100)
        self.limits = self.log("limits.log")
        port = start_nginx(
            self,
            f"access_log {self.limits} limits; root {site};"
            "location / { limit_req zone=site burst=200; }",
            LIMITS.replace("@RATE@", str(self.plan.whole(90, 160))),
        )
        master = int(self.log("nginx.pid").read_text())
        self.worker = children_of(master)[0][0]
        self.victim = self.client("shopper", browse, port, "/page", 0.025)
        self.crawler = self.client("crawler", crawl, port, self.plan.whole(8, 16))

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        victim, crawler = self.victim.result(), self.crawler.result()
        delays = []
        for line in self.limits.read_text().splitlines():
            path, end_s, took_s, status = line.split()
            if path == "/page" and status == "DELAYED":
                end = round(float(end_s) * 1000) * MS - self.plan.offset
                delays.append((end - round(float(took_s) * 1000) * MS, end))
        culprit = Culprit("process", "nginx", ["timer_sleep"], self.worker)
        culprit.also = [crawler["pid"]]
        return self.held(victim, "recvfrom", merged(delays), culprit)


def crawl(plan: WaitingPlan, port: int, count: int) -> dict[str, Any]:
    """Requests pages without a pause, on some connections at a time."""
    webs = [Web(port) for _ in range(count)]

    def work(web: Web) -> None:
        disturb(plan, lambda: web.fetch("/list"), 0)

    threads = [threading.Thread(target=work, args=(web,)) for web in webs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return myself()


class PhpSemaphore(Served):
    name = "php_semaphore"
    about = "a page waits for a System V semaphore, which a PHP page that issues coupons holds"
    packages: ClassVar[dict[str, str]] = {
        "nginx": "nginx-light",
        "/usr/sbin/php-fpm*": "php-fpm",
    }

    def setup(self) -> None:
        pages = self.stack.folder("pages", user("www-data"))
        shutil.copy(PROGRAMS / "coupon.php", pages / "coupon.php").chmod(0o644)
        ports = {"PAGES": free_port(), "SUMMARIES": free_port(), "LAB": self.lab.folder}
        text, locations = FPM, ""
        for name, value in ports.items():
            text = text.replace(f"@{name}@", str(value))
        for path, name in (("/", "PAGES"), ("/issue/", "SUMMARIES")):
            locations += (
                f"location {path} {{ include /etc/nginx/fastcgi_params;"
                f"fastcgi_param SCRIPT_FILENAME {pages}/coupon.php;"
                f"fastcgi_pass 127.0.0.1:{ports[name]}; }}\n"
            )
        config = self.log("fpm.conf")
        config.write_text(text)
        program = max(Path("/usr/sbin").glob("php-fpm*"))
        words = [program, "--nodaemonize", "--fpm-config", config]
        server = self.serve("PHP-FPM", words, int(ports["SUMMARIES"]))
        self.comm = program.name[:15]
        pools = children_of(server.pid)
        self.holder = next(pid for pid, words in pools if words.endswith("summaries"))
        self.coupons = pages / "coupon.log"
        port = start_nginx(self, locations)
        path = f"/issue/coupon.php?ms={self.plan.whole(150, 350)}"
        self.victim = self.client("shopper", browse, port, "/coupon.php")
        self.other = self.client("back-office", request_often, port, path, 0.15)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        other = self.other.result()
        names = ["cpu_running", "lock_kernel", "kernel_wait"]
        culprit = Culprit("process", self.comm, names, self.holder)
        culprit.also, culprit.middlemen = [other["pid"]], ["nginx", "php-fpm*"]
        culprit.objects = [Thing("any", "coupon"), Thing("any", "issue")]
        holds = spans_of(self.coupons, "issue")
        return self.held(self.victim.result(), "recvfrom", holds, culprit)


class HeapDump(Served):
    name = "java_heap_dump"
    about = "a job waits while all threads of Java stop for a heap dump that an operator requested"
    packages: ClassVar[dict[str, str]] = {**JAVA, "jcmd": "openjdk-17-jdk-headless"}

    def setup(self) -> None:
        run("javac", "-d", self.lab.folder, PROGRAMS / "Dispatch.java")
        port, self.stops = free_port(), self.log("safepoints.txt")
        words = ["java", "-XX:+UseSerialGC", "-Xms256m", "-Xmx256m", "-XX:-UsePerfData"]
        words += [f"-Xlog:safepoint:file={self.stops}:tn", "-cp", self.lab.folder, "Dispatch"]
        self.server = self.serve("Java", [*words, port, self.plan.whole(500, 900) * 1000], port)
        self.victim = self.client("courier", request_lines, port, self.plan.seed, small_job, [0.01])
        self.other = self.client("operator", dump, self.server.pid, self.log("heap.hprof"))

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        other = self.other.result()
        names = ["cpu_running", "lock_futex", "lock_program", "block_service"]
        culprit = Culprit("process", "VM Thread", names, self.server.pid)
        culprit.tids = threads_named(self.server.pid, "VM Thread")
        culprit.also = [other["pid"], *other["tools"]]
        culprit.objects = [Thing("any", "heap.hprof")]
        # The first ones were at the start of the server.
        begin = self.plan.windows[0][0]
        stops = [(start, end) for start, end in safepoints(self.stops) if start >= begin]
        return self.held(self.victim.result(), "recvfrom", stops, culprit)


def small_job(dice: random.Random) -> int:
    del dice
    return 100


def dump(plan: WaitingPlan, server: int, file: Path) -> dict[str, Any]:
    """Dumps the heap to a file, and removes it."""
    tools = []

    def act() -> None:
        words = ["jcmd", "-J-XX:-UsePerfData", str(server), "GC.heap_dump", str(file)]
        tool = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        tools.append(tool.pid)
        if tool.wait() != 0:
            raise RuntimeError("jcmd failed")
        file.unlink()

    return {**disturb(plan, act, 0.1), "tools": tools}

"""Runtimes: Ruby's lock, Node that waits, Java locks and safepoints, goroutines, a pool."""

from __future__ import annotations

import multiprocessing
import os
import time
from typing import Any, ClassVar

from faults.plan import Span, myself, repeat
from faults.truth import Culprit, Thing, Truth
from lab import run
from real.scenario import WaitingPlan
from real.sealed.kit import (
    PROGRAMS,
    Served,
    Web,
    browse,
    cpu_of_threads,
    disturb,
    merged,
    request_often,
    spans_of,
    stamped,
    threads_named,
)
from web.stack import free_port


class RubyLock(Served):
    name = "ruby_lock"
    about = "a request waits for the lock of the Ruby interpreter, which a report thread holds"
    packages: ClassVar[dict[str, str]] = {"ruby": "ruby"}

    def setup(self) -> None:
        self.app, port = self.ruby()
        path = f"/report?ms={self.plan.whole(250, 500)}"
        self.victim = self.client("shopper", browse, port, "/page")
        self.other = self.client("auditor", request_often, port, path, 0.2)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        other = self.other.result()
        reports = stamped(self.log("shop.log"), "report")
        culprit = Culprit("process", "ruby", ["cpu_running", "lock_futex"], self.app)
        culprit.also, culprit.tids = [other["pid"]], sorted({tid for (_, tid), _ in reports})
        culprit.objects = [Thing("any", "report")]
        holds = spans_of(self.log("shop.log"), "report")
        return self.held(self.victim.result(), "recvfrom", holds, culprit)


class Node(Served):
    packages: ClassVar[dict[str, str]] = {"node": "nodejs"}

    def node(self, **values: str) -> int:
        port = free_port()
        self.picture = self.log("picture.raw")
        self.picture.write_bytes(os.urandom(8 << 10) * 400)
        small = self.log("small.txt")
        small.write_text("small\n" * 100)
        words = ["node", PROGRAMS / "thumbs.js", port, small, self.log("thumbs.log")]
        self.server = self.serve("Node", words, port, env=self.environment(**values))
        return port


class NodeChild(Node):
    name = "node_child"
    about = "a request waits while the event loop of Node waits for a compressing child process"

    def setup(self) -> None:
        port = self.node()
        script = self.log("convert.sh")
        script.write_text(
            "#!/bin/sh\n# Compresses a picture; prints the process id first.\necho $$\n"
            f"exec xz -{self.plan.whole(3, 5)} -c {self.picture} >/dev/null\n"
        )
        self.victim = self.client("shopper", browse, port, "/page")
        self.other = self.client("editor", request_often, port, f"/convert?script={script}", 0.12)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        other = self.other.result()
        rows = stamped(self.log("thumbs.log"), "convert")
        pids = [pid for (pid,), _ in rows]
        culprit = Culprit("process", "xz", ["cpu_running", "child_wait"], pids[0])
        culprit.also, culprit.middlemen = [*pids[1:], other["pid"]], ["node"]
        culprit.objects = [Thing("file", str(self.picture)), Thing("any", "convert")]
        spans = spans_of(self.log("thumbs.log"), "convert")
        return self.held(self.victim.result(), "recvfrom", spans, culprit)


class NodePool(Node):
    name = "node_pool"
    about = "a request for a file waits because password hashes occupy the thread pool of libuv"

    def setup(self) -> None:
        port = self.node(UV_THREADPOOL_SIZE="2")
        path = f"/hash?n=8&rounds={self.plan.whole(50, 110) * 1000}"
        self.victim = self.client("shopper", browse, port, "/file")
        self.other = self.client("signup", request_often, port, path, 0.15)
        # A server without requests has used hardly any CPU in its pool.
        self.before = cpu_of_threads(self.server.pid)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        other = self.other.result()
        used = {
            tid: ns - self.before.get(tid, 0) for tid, ns in cpu_of_threads(self.server.pid).items()
        }
        pool = sorted(tid for tid, ns in used.items() if tid != self.server.pid)
        busiest = sorted(pool, key=lambda tid: used[tid])[-2:]
        culprit = Culprit("process", "node", ["cpu_running", "lock_futex"], self.server.pid)
        culprit.also, culprit.tids = [other["pid"]], busiest
        culprit.objects = [Thing("any", "hash")]
        spans = spans_of(self.log("thumbs.log"), "hash")
        return self.held(self.victim.result(), "recvfrom", spans, culprit)


class Java(Served):
    packages: ClassVar[dict[str, str]] = {
        "java": "openjdk-17-jdk-headless",
        "javac": "openjdk-17-jdk-headless",
    }

    def java(self, *options: str) -> int:
        run("javac", "-d", self.lab.folder, PROGRAMS / "Depot.java")
        port = free_port()
        words = ["java", *options, "-Xms96m", "-Xmx96m", "-XX:-UsePerfData"]
        # The JDK's server delays answers without this by Nagle's algorithm.
        words += ["-Dsun.net.httpserver.nodelay=true"]
        words += ["-cp", self.lab.folder, "Depot", port, self.log("depot.log")]
        self.server = self.serve("Java", words, port)
        return port


class JavaLock(Java):
    name = "java_reentrant_lock"
    about = "a request waits for a ReentrantLock of a reconciler thread, which waits for a partner"

    def setup(self) -> None:
        port = self.java()
        self.holder = threads_named(self.server.pid, "reconciler")
        path = f"/reconcile?ms={self.plan.whole(120, 320)}"
        self.victim = self.client("shopper", browse, port, "/item")
        self.other = self.client("partner", request_often, port, path, 0.2)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        other = self.other.result()
        names = ["lock_futex", "timer_sleep"]
        culprit = Culprit("process", "reconciler", names, self.server.pid, self.holder[0])
        culprit.tids = self.holder
        culprit.objects = [Thing("any", "reconciler")]
        truth = self.held(
            self.victim.result(), "recvfrom", spans_of(self.log("depot.log"), "reconcile"), culprit
        )
        truth.notes["client"] = other["pid"]
        return truth


def collect_during(plan: WaitingPlan, port: int, gap: float) -> dict[str, Any]:
    """A client that requests a collection shortly after each scan has begun."""
    web = Web(port)

    def act() -> None:
        time.sleep(gap)
        web.fetch("/collect")

    return disturb(plan, act, 0.02)


class JavaSafepoint(Java):
    name = "java_safepoint"
    about = "a request waits: a collection stops all threads, but one scans without safepoint polls"

    def setup(self) -> None:
        log = f"-Xlog:safepoint:file={self.log('safepoint.log')}:uptimenanos"
        port = self.java("-XX:+UseSerialGC", "-XX:-UseCountedLoopSafepoints", log)
        self.scanner = threads_named(self.server.pid, "price-scanner")
        path = f"/scan?rounds={self.plan.whole(150, 320)}000000"
        self.victim = self.client("shopper", browse, port, "/item")
        self.other = self.client("pricing", request_often, port, path, 0.15)
        self.collector = self.client("operator", collect_during, port, 0.06)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        other, collector = self.other.result(), self.collector.result()
        scans = spans_of(self.log("depot.log"), "scan")
        stops = spans_of(self.log("depot.log"), "collect")
        # A stop begins with the collection, and ends soon after the scan.
        holds = merged(
            [
                (max(begin, start), min(end, stop))
                for begin, end in scans
                for start, stop in stops
                if max(begin, start) < min(end, stop)
            ]
        )
        names = ["cpu_running", "lock_futex"]
        culprit = Culprit("process", "price-scanner", names, self.server.pid, self.scanner[0])
        culprit.tids, culprit.middlemen = self.scanner, ["VM Thread"]
        truth = self.held(self.victim.result(), "recvfrom", holds, culprit)
        truth.notes["clients"] = [other["pid"], collector["pid"]]
        lines = self.log("safepoint.log").read_text().splitlines()
        # Lines end with `..., Reaching safepoint: N ns, At safepoint: N ns, Total: N ns`.
        reached = [line.partition("Reaching safepoint:")[2].split() for line in lines]
        truth.notes["reaching_ns_max"] = max(
            (int(words[0]) for words in reached if words), default=0
        )
        return truth


class Go(Served):
    packages: ClassVar[dict[str, str]] = {"go": "golang-go"}

    def go(self, **values: str) -> int:
        program = self.lab.folder / "orders"
        run("go", "build", "-o", program, PROGRAMS / "orders.go")
        port = free_port()
        words = [program, port, self.log("orders.txt")]
        self.server = self.serve("Go", words, port, env=self.environment(**values))
        return port


class GoChannel(Go):
    name = "go_channel"
    about = "a request waits for a channel of Go whose receiver calls a Ruby server that computes"
    packages: ClassVar[dict[str, str]] = {**Go.packages, "ruby": "ruby"}

    def setup(self) -> None:
        self.app, app_port = self.ruby()
        port = self.go()
        hook = f"http://127.0.0.1:{app_port}/report?ms={self.plan.whole(120, 300)}"
        self.victim = self.client("shopper", browse, port, "/order")
        self.other = self.client("dealer", request_often, port, f"/order?hook={hook}", 0.15)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        other = self.other.result()
        reports = stamped(self.log("shop.log"), "report")
        culprit = Culprit("process", "ruby", ["cpu_running"], self.app)
        culprit.also, culprit.middlemen = [other["pid"]], ["orders"]
        culprit.tids = sorted({tid for (_, tid), _ in reports})
        culprit.objects = [Thing("any", "report")]
        holds = spans_of(self.log("shop.log"), "report")
        return self.held(self.victim.result(), "recvfrom", holds, culprit)


class GoProcessors(Go):
    name = "go_processors"
    about = "a request waits because goroutines of an audit take turns on the only processor of Go"

    def setup(self) -> None:
        port = self.go(GOMAXPROCS="1")
        path = f"/audit?ms={self.plan.whole(250, 450)}&n={self.plan.whole(4, 7)}"
        self.victim = self.client("shopper", browse, port, "/plain")
        self.other = self.client("auditor", request_often, port, path, 0.15)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        other = self.other.result()
        culprit = Culprit("process", "orders", ["cpu_running"], self.server.pid)
        culprit.also = [other["pid"]]
        culprit.objects = [Thing("any", "audit")]
        holds = spans_of(self.log("orders.txt"), "audit", self.plan.offset)
        return self.held(self.victim.result(), "recvfrom", holds, culprit)


def resize(plan: WaitingPlan, jobs: Any, results: dict[str, Any]) -> dict[str, Any]:
    """A worker that takes one job after another; the spans of long ones."""
    spans = []
    while (job := jobs.get()) is not None:
        owner, rounds = job
        begin = time.monotonic_ns()
        total = 0
        for _ in range(rounds):
            total += sum(range(10_000))
        spans.append((begin, time.monotonic_ns()))
        results[owner].put(total)
    return {**myself(), "spans": spans}


def submit(plan: WaitingPlan, jobs: Any, results: Any) -> dict[str, Any]:
    """The victim: puts small jobs into the queue of the pool and waits for each."""
    plan.wait()

    def once() -> None:
        jobs.put(("gallery", 1))
        results.get()

    return repeat(plan, once, 0.01)


def submit_large(plan: WaitingPlan, jobs: Any, results: Any, rounds: int) -> dict[str, Any]:
    def act() -> None:
        jobs.put(("importer", rounds))
        results.get()

    return disturb(plan, act, 0.15)


class PythonPool(Served):
    name = "python_pool"
    about = "a job waits in a multiprocessing queue while the only worker resizes a large picture"
    # The Python that runs this is enough.
    packages: ClassVar[dict[str, str]] = {}

    def setup(self) -> None:
        context = multiprocessing.get_context("fork")
        self.jobs = context.Queue()
        results = {name: context.Queue() for name in ("gallery", "importer")}
        rounds = self.plan.whole(600, 1500)
        self.worker = self.client("resizer", resize, self.jobs, results)
        self.victim = self.client("gallery", submit, self.jobs, results["gallery"])
        words = (self.jobs, results["importer"], rounds)
        self.other = self.client("importer", submit_large, *words)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        victim, other = self.victim.result(), self.other.result()
        self.jobs.put(None)
        worker = self.worker.result()
        self.jobs.close()
        holds = [(begin, end) for begin, end in worker["spans"] if end - begin > 20_000_000]
        culprit = Culprit("process", "resizer", ["cpu_running", "pipe_wait"], worker["pid"])
        culprit.also = [other["pid"]]
        return self.held(victim, "read", holds, culprit)

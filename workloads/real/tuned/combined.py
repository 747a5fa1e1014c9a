"""Two faults at once: the answer for one of them is not the answer for the other."""

from __future__ import annotations

import socket
import time
from functools import partial
from typing import Any, ClassVar

from faults.plan import Span, myself, overlap
from faults.truth import Culprit, Thing, Truth
from real import rows, servers
from real.scenario import Scenario, WaitingPlan
from real.tuned.databases import IDLE, POSTGRES
from real.tuned.redis import SCRIPT, command, report
from web.stack import PostgreSQL


def check_out(plan: WaitingPlan, port: int, connect: rows.Connect) -> dict[str, Any]:
    """The victim: reads the cart from Redis, then changes the stock in PostgreSQL."""
    cache, cursor = socket.create_connection(("127.0.0.1", port)), connect().cursor()
    cursor.execute(rows.CHANGE)
    plan.wait()
    reads, changes = [], []
    while not plan.is_over():
        begin = time.monotonic_ns()
        command(cache, "GET", "cart:1")
        middle = time.monotonic_ns()
        cursor.execute(rows.CHANGE)
        reads.append((begin, middle))
        changes.append((middle, time.monotonic_ns()))
        time.sleep(0.01)
    return {**myself(), "reads": reads, "changes": changes}


class TwoFaults(Scenario):
    name = "redis_and_row_lock"
    about = "a checkout waits for a Lua script in Redis, and for a row lock in PostgreSQL"
    packages: ClassVar[dict[str, str]] = {**POSTGRES, "redis-server": "redis-server"}

    def setup(self) -> None:
        database = PostgreSQL(self.stack, rows.TABLE)
        connect = partial(rows.postgres, database.port)
        self.server, port = servers.redis(self.stack)
        self.victim = self.client("checkout", check_out, port, connect)
        script = ["EVAL", SCRIPT, "0", str(self.plan.whole(100, 200) * 1000)]
        self.reporter = self.client("report", report, port, script, 0.2)
        hold_s, gap_s = self.plan.pick(0.15, 0.3), self.plan.pick(0.15, 0.25)
        thread = "SELECT pg_backend_pid()"
        self.holder = self.client("batch", rows.hold, connect, thread, hold_s, gap_s)

    def inject(self) -> list[Span]:
        return self.plan.switch(lambda: None, lambda: None)

    def truth(self, faults: list[Span]) -> Truth:
        victim, holder = self.victim.result(), self.holder.result()
        scripts = [(begin, end) for begin, end in self.reporter.result()["spans"]]
        holds = [(begin, end) for begin, end in holder["spans"]]
        script = Culprit("process", "redis-server", ["cpu_running"], self.server.pid)
        script.also = [self.reporter.pid]
        script.objects = [Thing("any", "report")]
        lock = Culprit("process", "postgres", IDLE, holder["served_by"])
        lock.also, lock.middlemen = [self.holder.pid], ["postgres"]
        lock.objects = [Thing("any", "batch"), Thing("any", "stock")]
        truth = Truth(self.plan, faults, [script, lock])
        for begin, end in victim["reads"]:
            truth.add(victim, "recvfrom", (begin, end), [overlap((begin, end), scripts), 0])
        for begin, end in victim["changes"]:
            truth.add(victim, "poll", (begin, end), [0, overlap((begin, end), holds)])
        return truth

"""CPUs, disks and files that another process occupies."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import Any, ClassVar

from faults.cpu import cpu_of_victim
from faults.disks import EXT4
from faults.plan import Span, act, myself, repeat, sleep_until
from faults.truth import Culprit, Thing, Truth
from real import servers
from real.scenario import Scenario, WaitingPlan
from real.tuned.redis import read_keys

TABLE = "CREATE TABLE IF NOT EXISTS entry (at INTEGER, text TEXT)"
INSERT = "INSERT INTO entry VALUES (?, ?)"
DISK = {"mkfs.ext4": "e2fsprogs", "pkg-config": "pkg-config", "losetup": "mount"}


class FifoRedis(Scenario):
    name = "fifo_redis"
    about = "a GET waits for Redis, which does not get its CPU while a SCHED_FIFO thread runs there"
    packages: ClassVar[dict[str, str]] = {"redis-server": "redis-server", "taskset": "util-linux"}

    def setup(self) -> None:
        self.cpu = cpu_of_victim()
        prefix = ("taskset", "-c", self.cpu)
        self.server, port = servers.redis(self.stack, prefix=prefix)
        self.victim = self.client("cart", on_other_cpu, port, self.cpu)
        self.words = [f"cpu={self.cpu}", "rt=1", f"burst_us={self.plan.whole(120, 300) * 1000}"]
        self.words.append(f"pause_us={self.plan.whole(80, 160) * 1000}")

    def load(self) -> None:
        self.spinner = act(self.lab, self.plan, "spin", *self.words)

    def inject(self) -> list[Span]:
        return self.plan.switch(lambda: None, lambda: None)

    def truth(self, faults: list[Span]) -> Truth:
        victim, spins = self.victim.result(), self.spinner.result()["spins0"]
        culprit = Culprit("process", spins["comm"], ["cpu_runqueue"], self.spinner.pid)
        culprit.middlemen = ["redis-server"]
        culprit.objects = [Thing("cpu", str(self.cpu))]
        spans = [(begin, end) for begin, end in spins["spans"]]
        return self.held(victim, "recvfrom", spans, culprit)


def on_other_cpu(plan: WaitingPlan, port: int, cpu: int) -> dict[str, Any]:
    os.sched_setaffinity(0, os.sched_getaffinity(0) - {cpu})
    return read_keys(plan, port)


def insert(plan: WaitingPlan, path: Path, pause: float, safe: bool) -> dict[str, Any]:
    """The victim: inserts a row in a transaction of its own. `safe` makes each of them an fsync."""
    database = sqlite3.connect(path, timeout=8, isolation_level=None)
    database.execute(f"PRAGMA synchronous = {'FULL' if safe else 'OFF'}")
    plan.wait()

    def once() -> None:
        with contextlib.suppress(sqlite3.OperationalError):
            database.execute(INSERT, (time.time_ns(), "paid"))

    return repeat(plan, once, pause)


def load_rows(plan: WaitingPlan, path: Path, hold_s: float) -> dict[str, Any]:
    """The culprit: a transaction that stays open while it waits for its input."""
    database = sqlite3.connect(path, timeout=8, isolation_level=None)
    database.execute("PRAGMA synchronous = OFF")
    plan.wait()
    spans = []
    while not plan.is_over():
        if plan.is_on():
            database.execute("BEGIN IMMEDIATE")
            begin = time.monotonic_ns()
            database.execute(INSERT, (time.time_ns(), "imported"))
            time.sleep(hold_s)
            database.execute("COMMIT")
            spans.append((begin, time.monotonic_ns()))
        time.sleep(0.1)
    return {**myself(), "spans": spans}


class SqliteBusy(Scenario):
    name = "sqlite_busy"
    about = "an INSERT retries while another process keeps a SQLite transaction open"

    def setup(self) -> None:
        path = self.lab.folder / "shop.db"
        with sqlite3.connect(path) as database:
            database.execute(TABLE)
        database.close()
        self.victim = self.client("checkout", insert, path, 0.008, False)
        self.holder = self.client("import", load_rows, path, self.plan.pick(0.2, 0.45))

    def inject(self) -> list[Span]:
        return self.plan.switch(lambda: None, lambda: None)

    def truth(self, faults: list[Span]) -> Truth:
        victim, result = self.victim.result(), self.holder.result()
        names = ["lock_program", "lock_inode", "lock_kernel", "timer_sleep"]
        culprit = Culprit("process", "import", names, self.holder.pid)
        culprit.objects = [Thing("any", "shop.db")]
        holds = [(begin, end) for begin, end in result["spans"]]
        truth = Truth(self.plan, holds, [culprit])
        for begin, end in victim["spans"]:
            # SQLite sleeps up to 100 ms between two attempts: the time to the next one is the same.
            held = any(begin < stop and start < end for start, stop in holds)
            long = end - begin > 4_000_000
            truth.add(
                victim, "clock_nanosleep", (begin, end), [end - begin if held and long else 0]
            )
        return truth


class FsyncNeighbour(Scenario):
    name = "fsync_neighbour_sqlite"
    about = "a commit of SQLite waits for the journal of ext4, which writes the data of dd"
    packages: ClassVar[dict[str, str]] = {**DISK, "dd": "coreutils"}

    def setup(self) -> None:
        self.disk = self.lab.disk(192, "serial")
        self.folder = self.lab.mount(self.disk, "ext4", *EXT4)
        path = self.folder / "shop.db"
        with sqlite3.connect(path) as database:
            database.execute(TABLE)
        database.close()
        mib_ms = self.plan.whole(15, 30)
        self.disk.set(read_us=300, write_us=800, mib_us=mib_ms * 1000)
        self.mib = self.plan.whole(3, 6)
        self.victim = self.client("checkout", insert, path, 0.03, True)

    def load(self) -> None:
        self.neighbour = self.client("backup", back_up, self.folder / "backup", self.mib)

    def inject(self) -> list[Span]:
        return self.plan.switch(lambda: None, lambda: None)

    def truth(self, faults: list[Span]) -> Truth:
        victim, result = self.victim.result(), self.neighbour.result()
        names = ["journal_wait", "block_queue", "sync_storm", "lock_inode", "writeback_wait"]
        culprit = Culprit("process", "dd", names, self.neighbour.pid, with_children=True)
        culprit.near = ["jbd2/*"]
        culprit.objects = [Thing("device", self.disk.name), Thing("journal", self.disk.name)]
        culprit.objects.append(Thing("any", "backup"))
        spans = [(begin, end) for begin, end in result["spans"]]
        return self.slowed(victim, "fdatasync", spans, culprit)


def back_up(plan: WaitingPlan, path: Path, mib: int) -> dict[str, Any]:
    """Runs dd with fsync again and again while the fault is on."""
    spans = []
    for start, stop in plan.windows:
        sleep_until(start)
        begin = time.monotonic_ns()
        while time.monotonic_ns() < stop:
            words = [
                "dd",
                "if=/dev/zero",
                f"of={path}",
                "bs=1M",
                f"count={mib}",
                "conv=fsync,notrunc",
            ]
            subprocess.run(words, stderr=subprocess.DEVNULL, check=False)
        spans.append((begin, time.monotonic_ns()))
    return {**myself(), "spans": spans}

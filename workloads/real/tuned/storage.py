"""File systems that are frozen or shared, and page caches that are limited."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any, ClassVar

from faults.disks import EXT4
from faults.plan import MS, Span, myself, repeat, sleep_until
from faults.truth import Culprit, Thing, Truth
from lab import UnavailableError
from real import http, servers
from real.scenario import Scenario, WaitingPlan
from real.tuned.machine import DISK, back_up


def append(plan: WaitingPlan, path: Path, pause: float, size: int = 200) -> dict[str, Any]:
    """The victim: appends a line to its log."""
    plan.wait()
    with open(path, "ab", buffering=0) as file:
        return repeat(plan, lambda: file.write(b"x" * size), pause)


def snapshot(plan: WaitingPlan, folder: Path, hold_s: float) -> dict[str, Any]:
    """The culprit: freezes a file system while it takes a snapshot, as a backup agent does."""
    plan.wait()
    spans = []
    while not plan.is_over():
        if plan.is_on():
            begin = time.monotonic_ns()
            subprocess.run(["fsfreeze", "-f", folder], check=True)
            time.sleep(hold_s)
            subprocess.run(["fsfreeze", "-u", folder], check=True)
            spans.append((begin, time.monotonic_ns()))
            time.sleep(0.2)
        time.sleep(0.02)
    return {**myself(), "spans": spans}


class BackupFreeze(Scenario):
    name = "backup_freeze"
    about = "a write waits for a file system that a backup agent has frozen for a snapshot"
    packages: ClassVar[dict[str, str]] = {**DISK, "fsfreeze": "util-linux"}

    def setup(self) -> None:
        folder = self.lab.mount(self.lab.disk(64), "ext4", *EXT4)
        self.lab.will_undo("frozen", str(folder))
        self.victim = self.client("audit", append, folder / "audit.log", 0.01)
        self.agent = self.client("agent", snapshot, folder, self.plan.pick(0.15, 0.35))

    def inject(self) -> list[Span]:
        return self.plan.switch(lambda: None, lambda: None)

    def truth(self, faults: list[Span]) -> Truth:
        victim, agent = self.victim.result(), self.agent.result()
        names = ["fs_frozen", "lock_kernel"]
        culprit = Culprit("process", "fsfreeze", names, self.agent.pid, with_children=True)
        culprit.objects = [Thing("any", "ext4")]
        return self.held(victim, "write", agent["spans"], culprit)


class GoLog(Scenario):
    name = "go_log_neighbour"
    about = "a put waits for a Go server whose log shares its disk with dd"
    packages: ClassVar[dict[str, str]] = {**DISK, "go": "golang-go", "dd": "coreutils"}

    def setup(self) -> None:
        self.disk = self.lab.disk(192, "serial")
        folder = self.lab.mount(self.disk, "ext4", *EXT4)
        self.server, port = servers.go(self.stack, "wal", folder / "wal.log")
        self.disk.set(read_us=200, write_us=600, mib_us=self.plan.whole(15, 30) * 1000)
        self.victim = self.client("config", http.fetch, port, "/put", 0.02)
        self.folder, self.mib = folder, self.plan.whole(3, 6)

    def load(self) -> None:
        self.neighbour = self.client("backup", back_up, self.folder / "backup", self.mib)

    def inject(self) -> list[Span]:
        return self.plan.switch(lambda: None, lambda: None)

    def truth(self, faults: list[Span]) -> Truth:
        victim, result = self.victim.result(), self.neighbour.result()
        names = ["journal_wait", "block_queue", "sync_storm", "lock_inode", "writeback_wait"]
        culprit = Culprit("process", "dd", names, self.neighbour.pid, with_children=True)
        culprit.middlemen, culprit.near = ["wal"], ["jbd2/*"]
        culprit.objects = [Thing("device", self.disk.name), Thing("journal", self.disk.name)]
        culprit.objects.append(Thing("any", "backup"))
        spans = [(begin, end) for begin, end in result["spans"]]
        return self.slowed(victim, "recvfrom", spans, culprit)


class MemoryGroup:
    """A control group with a memory limit."""

    def __init__(self, scenario: Scenario, mib: int) -> None:
        old, new = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
        self.name = f"whyslow-lab-memory-{os.getpid()}"
        self.path = (old if old.is_dir() else new) / self.name
        if not old.is_dir() and "memory" not in (new / "cgroup.subtree_control").read_text():
            raise UnavailableError("the machine has no cgroup with a memory controller")
        scenario.lab.will_undo("cgroup", str(self.path))
        self.path.mkdir()
        limit = "memory.limit_in_bytes" if old.is_dir() else "memory.max"
        (self.path / limit).write_text(str(mib << 20))

    def enter(self) -> None:
        (self.path / "cgroup.procs").write_text(str(os.getpid()))


def collect(plan: WaitingPlan, group: MemoryGroup, path: Path, pause: float) -> dict[str, Any]:
    """The victim: overwrites a small file through the page cache of its group."""
    group.enter()
    block = b"x" * (1 << 18)
    plan.wait()
    with open(path, "wb", buffering=0) as file:
        number = 0

        def once() -> None:
            nonlocal number
            number += 1
            os.pwrite(file.fileno(), block, (number % 32) << 18)

        return repeat(plan, once, pause)


def load_file(plan: WaitingPlan, group: MemoryGroup, path: Path, mib: int) -> dict[str, Any]:
    """The culprit: writes a large file in the same group, which uses up its memory."""
    group.enter()
    plan.wait()
    spans = []
    for start, stop in plan.windows:
        sleep_until(start)
        begin = time.monotonic_ns()
        while time.monotonic_ns() < stop:
            with open(path, "wb", buffering=0) as file:
                for _ in range(mib):
                    file.write(b"x" * (1 << 20))
                    if time.monotonic_ns() >= stop:
                        break
        spans.append((begin, time.monotonic_ns() + 20 * MS))
    return {**myself(), "spans": spans}


class GroupMemory(Scenario):
    name = "group_memory"
    about = "a write reclaims memory that an import in the same memory control group has used up"
    packages: ClassVar[dict[str, str]] = {**DISK}

    def setup(self) -> None:
        disk = self.lab.disk(400)
        folder = self.lab.mount(disk, "ext4", *EXT4)
        group = MemoryGroup(self, self.plan.whole(24, 40))
        disk.set(write_us=self.plan.whole(2, 4) * 1000)
        self.victim = self.client("metrics", collect, group, folder / "metrics", 0.01)
        self.other = self.client("import", load_file, group, folder / "dump", 120)

    def inject(self) -> list[Span]:
        return self.plan.switch(lambda: None, lambda: None)

    def truth(self, faults: list[Span]) -> Truth:
        victim, other = self.victim.result(), self.other.result()
        names = ["reclaim", "memory_throttle", "dirty_throttle", "writeback_wait", "block_queue"]
        culprit = Culprit("process", "import", names, self.other.pid)
        culprit.objects = [Thing("any", "dump")]
        spans = [(begin, end) for begin, end in other["spans"]]
        return self.slowed(victim, "pwrite64", spans, culprit)

"""The kernel: locks of memory maps, files and file systems, memory limits, and CPU shares."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import sqlite3
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

from faults.cpu import cpu_of_victim
from faults.plan import Span, repeat
from faults.truth import Culprit, Thing, Truth
from lab import LIBC, UnavailableError, name_thread, run
from real.scenario import WaitingPlan
from real.sealed.kit import Served, disturb, stamped
from real.sealed.stores import fetch
from web.stack import free_port

MIB = 1 << 20
EXT4 = ["-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", "-J", "size=4"]
MAP_POPULATE = 0x8000


class MapLock(Served):
    name = "mmap_populate"
    about = (
        "a thread's mmap waits for the lock of the memory map while another thread populates one"
    )

    def setup(self) -> None:
        mib = self.plan.whole(250, 500)
        self.victim = self.client("imaged", map_small, mib)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        result = self.victim.result()
        names = ["lock_kernel", "cpu_running", "kernel_wait"]
        culprit = Culprit("process", "preloader", names, result["pid"], result["loader"]["tid"])
        return self.held(result, "mmap", result["loader"]["spans"], culprit)


def mapped(size: int, flags: int) -> None:
    """Maps and unmaps memory, without the interpreter's lock."""
    LIBC.mmap.restype = ctypes.c_void_p
    kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | flags
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    place = LIBC.mmap(None, ctypes.c_size_t(size), protection, kind, -1, ctypes.c_long(0))
    LIBC.munmap(ctypes.c_void_p(place), ctypes.c_size_t(size))


def map_small(plan: WaitingPlan, mib: int) -> dict[str, Any]:
    """A service that maps buffers, and has a thread that loads a large cache."""
    loaded: dict[str, Any] = {}

    def load() -> None:
        name_thread("preloader")
        loaded.update(disturb(plan, lambda: mapped(mib * MIB, MAP_POPULATE), 0.12))

    loader = threading.Thread(target=load)
    loader.start()
    plan.wait()
    result = repeat(plan, lambda: mapped(64 << 10, 0), 0.005)
    loader.join()
    return {**result, "loader": loaded}


class FlockScripts(Served):
    name = "flock_scripts"
    about = "a job waits for flock of a shell script that compresses a file under it"
    packages: ClassVar[dict[str, str]] = {"flock": "util-linux", "gzip": "gzip"}

    def setup(self) -> None:
        self.flag, lock, data = self.log("run"), self.log("jobs.lock"), self.log("data")
        lock.touch()
        data.write_bytes(os.urandom(1 << 16) * 16 * self.plan.whole(8, 16))
        script = self.log("nightly.sh")
        script.write_text(
            "#!/bin/sh\n"
            f"while :; do\n    [ -e {self.flag} ] || {{ sleep 0.02; continue; }}\n"
            "    begin=$(date +%s%N)\n"
            f"    flock {lock} gzip -c {data} >/dev/null\n"
            f"    echo hold $$ $begin $(date +%s%N) >>{self.log('nightly.txt')}\n"
            "    sleep 0.15\ndone\n"
        )
        self.script = self.bystander(["sh", script])
        self.victim = self.client("mailer", take_lock, lock)

    def begin_fault(self) -> None:
        self.flag.touch()

    def end_fault(self) -> None:
        self.flag.unlink()

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        victim = self.victim.result()
        names = ["lock_kernel", "cpu_running", "kernel_wait", "child_wait"]
        culprit = Culprit("process", "gzip", names, self.script.pid, with_children=True)
        culprit.objects = [Thing("file", str(self.log("jobs.lock")))]
        rows = stamped(self.log("nightly.txt"), "hold", self.plan.offset)
        return self.held(victim, "flock", [span for _, span in rows], culprit)


def take_lock(plan: WaitingPlan, path: Path) -> dict[str, Any]:
    """The victim: a job that takes a lock file for a moment."""
    fd = os.open(path, os.O_RDWR)
    plan.wait()

    def once() -> None:
        fcntl.flock(fd, fcntl.LOCK_EX)
        fcntl.flock(fd, fcntl.LOCK_UN)

    return repeat(plan, once, 0.01)


class FrozenFiles(Served):
    name = "fsfreeze_snapshot"
    about = "a commit of SQLite waits while a snapshot tool has frozen the file system"
    packages: ClassVar[dict[str, str]] = {"fsfreeze": "util-linux"}

    def setup(self) -> None:
        disk = self.lab.disk(64)
        self.folder = self.lab.mount(disk, "ext4", *EXT4)
        self.lab.will_undo("frozen", str(self.folder))
        self.victim = self.client("ledger", append_rows, self.folder / "ledger.db")
        self.other = self.client("snapshot", freeze, self.folder, self.plan.pick(0.12, 0.35))

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        other = self.other.result()
        names = ["lock_kernel", "kernel_wait"]
        culprit = Culprit("process", "snapshot", names, other["pid"], with_children=True)
        return self.held(self.victim.result(), "pwrite64", other["frozen"], culprit)


def append_rows(plan: WaitingPlan, path: Path) -> dict[str, Any]:
    """The victim: commits small transactions, without flushes."""
    database = sqlite3.connect(path, isolation_level=None, timeout=30)
    database.execute("PRAGMA synchronous = OFF")
    database.execute("CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY, text TEXT)")
    plan.wait()
    return repeat(plan, lambda: database.execute("INSERT INTO entries (text) VALUES ('x')"), 0.01)


def freeze(plan: WaitingPlan, folder: Path, seconds: float) -> dict[str, Any]:
    frozen = []

    def act() -> None:
        subprocess.run(["fsfreeze", "-f", str(folder)], check=True)
        begin = time.monotonic_ns()
        try:
            time.sleep(seconds)
        finally:
            end = time.monotonic_ns()
            subprocess.run(["fsfreeze", "-u", str(folder)], check=True)
        frozen.append((begin, end))

    return {**disturb(plan, act, 0.2), "frozen": frozen}


class MetadataStorm(Served):
    name = "ext4_unpack"
    about = "a rename waits for the journal while tar unpacks thousands of files on a slow disk"
    packages: ClassVar[dict[str, str]] = {"tar": "tar"}

    def setup(self) -> None:
        self.disk = self.lab.disk(256, "serial")
        folder = self.lab.folder / "ext4"
        folder.mkdir()
        run("mkfs.ext4", "-q", *EXT4, self.disk.device)
        self.lab.will_undo("mount", str(folder))
        # Data goes through the small journal, too, as on some mail servers.
        run("mount", "-t", "ext4", "-o", "data=journal", self.disk.device, folder)
        source = self.log("source")
        for number in range(self.plan.whole(1500, 2500)):
            place = source / f"{number % 100}"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{number}.txt").write_text("text\n" * 100)
        archive = self.log("release.tar")
        self.lab.run("tar", "-C", source, "-cf", archive, ".")
        self.flag = self.log("unpack")
        script = self.log("deploy.sh")
        script.write_text(
            "#!/bin/sh\nn=0\n"
            f"while :; do\n    [ -e {self.flag} ] || {{ sleep 0.02; continue; }}\n"
            f"    n=$((n + 1))\n    mkdir {folder}/$n\n    begin=$(date +%s%N)\n"
            f"    tar -C {folder}/$n -xf {archive}\n    rm -rf {folder}/$n\n"
            f"    echo unpack $$ $begin $(date +%s%N) >>{self.log('deploy.txt')}\ndone\n"
        )
        self.script = self.bystander(["sh", script])
        self.disk.set(write_us=2000, mib_us=self.plan.whole(20, 40) * 1000)
        self.victim = self.client("queue", rename_files, folder)

    def begin_fault(self) -> None:
        self.flag.touch()

    def end_fault(self) -> None:
        self.flag.unlink()

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        victim = self.victim.result()
        self.disk.set(write_us=0, mib_us=0)
        rows = stamped(self.log("deploy.txt"), "unpack", self.plan.offset)
        names = ["journal_wait", "block_queue", "writeback_wait", "lock_inode"]
        culprit = Culprit("process", "tar", names, self.script.pid, with_children=True)
        culprit.near = ["jbd2/*", "kworker/*", self.disk.name]
        culprit.objects = [Thing("device", self.disk.name), Thing("journal", self.disk.name)]
        return self.slowed(victim, "rename", [span for _, span in rows], culprit)


def rename_files(plan: WaitingPlan, folder: Path) -> dict[str, Any]:
    """The victim: a mail queue that creates a file and renames it."""
    place = folder / "queue"
    place.mkdir()
    plan.wait()

    def once() -> None:
        (place / "new").write_bytes(b"m" * 300)
        os.rename(place / "new", place / "ready")

    return repeat(plan, once, 0.01)


class DirtyGroup(Served):
    name = "memcg_dirty"
    about = "an allocation reclaims pages that dd, in the same container, dirtied on a slow disk"
    packages: ClassVar[dict[str, str]] = {"dd": "coreutils"}

    def setup(self) -> None:
        root = Path("/sys/fs/cgroup/memory")
        if not (root / "memory.limit_in_bytes").exists():
            raise UnavailableError("there is no memory controller of cgroup v1")
        self.disk = self.lab.disk(800, "serial")
        self.folder = self.lab.mount(self.disk, "ext4", *EXT4)
        group = root / f"whyslow-lab-{os.getpid()}"
        self.lab.will_undo("cgroup", str(group))
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(self.plan.whole(70, 100) * MIB))
        self.procs = group / "cgroup.procs"
        self.mib_us = self.plan.whole(40, 70) * 1000
        self.victim = self.client("renderer", allocate, self.procs)
        self.writers: list[Any] = []

    def begin_fault(self) -> None:
        self.disk.set(write_us=1000, mib_us=self.mib_us)
        words = ["dd", "if=/dev/zero", f"of={self.folder}/export-{len(self.writers)}", "bs=1M"]
        words = ["sh", "-c", f'echo $$ >{self.procs} && exec "$@"', "sh", *words, "count=150"]
        self.writers.append(self.bystander(words))

    def end_fault(self) -> None:
        # What dd has written would take seconds more.
        self.disk.set(write_us=0, mib_us=0)
        self.writers[-1].kill()
        self.writers[-1].wait(20)
        (self.folder / f"export-{len(self.writers) - 1}").unlink(missing_ok=True)

    def truth(self, faults: list[Span]) -> Truth:
        victim = self.victim.result()
        names = ["reclaim", "writeback_wait", "memory_throttle", "block_service"]
        culprit = Culprit("process", "dd", names, self.writers[0].pid)
        culprit.also = [writer.pid for writer in self.writers[1:]]
        culprit.near = [self.disk.name, "kworker/*", self.procs.parent.name]
        culprit.objects = [Thing("device", self.disk.name)]
        return self.slowed(victim, "", faults, culprit)


def allocate(plan: WaitingPlan, procs: Path) -> dict[str, Any]:
    """The victim: needs some megabytes for each picture."""
    procs.write_text(str(os.getpid()))
    plan.wait()

    def once() -> None:
        with mmap.mmap(-1, 2 * MIB) as memory:
            for at in range(0, 2 * MIB, 4096):
                memory[at] = 1

    return repeat(plan, once, 0.02)


class CpuShares(Served):
    name = "cpu_shares"
    about = "memcached, in a group with few CPU shares, waits for the CPU while xz compresses"
    packages: ClassVar[dict[str, str]] = {"memcached": "memcached", "xz": "xz-utils"}

    def setup(self) -> None:
        self.cpu = cpu_of_victim()
        group = own_cpu_group() / f"whyslow-lab-{os.getpid()}"
        self.lab.will_undo("cgroup", str(group))
        group.mkdir()
        (group / "cpu.shares").write_text("2")
        port = free_port()
        words = ["memcached", "-u", "root", "-l", "127.0.0.1", "-p", port, "-U", "0", "-t", "1"]
        server = self.serve("memcached", ["taskset", "-c", self.cpu, *words], port)
        (group / "cgroup.procs").write_text(str(server.pid))
        self.data = self.log("data")
        self.data.write_bytes(os.urandom(8 * MIB))
        self.victim = self.client("web", fetch, port)
        self.jobs: list[Any] = []

    def begin_fault(self) -> None:
        self.jobs.append(compress(self, self.cpu, self.data))

    def end_fault(self) -> None:
        self.jobs[-1].kill()
        self.jobs[-1].wait(10)

    def truth(self, faults: list[Span]) -> Truth:
        culprit = Culprit("process", "xz", ["cpu_runqueue"], self.jobs[0].pid)
        culprit.also = [job.pid for job in self.jobs[1:]]
        culprit.middlemen, culprit.objects = ["memcached"], [Thing("cpu", str(self.cpu))]
        truth = self.slowed(self.victim.result(), "recvfrom", faults, culprit)
        truth.needs_quiet = True
        return truth


def own_cpu_group() -> Path:
    """The control group of this run, so that only its own programs compete by their shares."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "cpu" in controllers.split(","):
            folder = Path("/sys/fs/cgroup/cpu") / path.lstrip("/")
            if (folder / "cpu.shares").exists():
                return folder
    raise UnavailableError("there is no cpu controller of cgroup v1")


def compress(scenario: Served, cpu: int, data: Path) -> subprocess.Popen:
    """Starts a compression on one CPU that takes longer than a window."""
    words = ["taskset", "-c", cpu, "xz", "-9e", "-k", "-c", data]
    return scenario.bystander(words, has_session=False)


class PriorityInversion(Served):
    name = "niced_lock_holder"
    about = "a job waits for flock of a niced process, which xz keeps from its CPU"
    packages: ClassVar[dict[str, str]] = {"xz": "xz-utils"}

    def setup(self) -> None:
        self.cpu = cpu_of_victim()
        lock = self.log("index.lock")
        lock.touch()
        self.data = self.log("data")
        self.data.write_bytes(os.urandom(8 * MIB))
        rounds = self.plan.whole(70, 120)
        self.holder = self.client("indexer", index, lock, self.cpu, rounds)
        self.victim = self.client("search", take_lock, lock)
        self.jobs: list[Any] = []

    def begin_fault(self) -> None:
        self.jobs.append(compress(self, self.cpu, self.data))

    def end_fault(self) -> None:
        self.jobs[-1].kill()
        self.jobs[-1].wait(10)

    def truth(self, faults: list[Span]) -> Truth:
        victim, holder = self.victim.result(), self.holder.result()
        names = ["cpu_runqueue", "lock_kernel", "kernel_wait"]
        culprit = Culprit("process", "xz", names, self.jobs[0].pid)
        culprit.also = [job.pid for job in self.jobs[1:]]
        culprit.middlemen = ["indexer"]
        culprit.objects = [Thing("cpu", str(self.cpu)), Thing("file", str(self.log("index.lock")))]
        truth = self.slowed(victim, "flock", faults, culprit)
        truth.needs_quiet = True
        truth.notes["holder"] = holder["pid"]
        return truth


def index(plan: WaitingPlan, path: Path, cpu: int, rounds: int) -> dict[str, Any]:
    """Computes for a few milliseconds under the lock, with a low priority."""
    os.sched_setaffinity(0, {cpu})
    os.nice(10)
    fd = os.open(path, os.O_RDWR)
    plan.wait()

    def once() -> None:
        fcntl.flock(fd, fcntl.LOCK_EX)
        for _ in range(rounds):
            sum(range(10_000))
        fcntl.flock(fd, fcntl.LOCK_UN)

    return repeat(plan, once, 0.05)

"""Jobs and agents on one host: refs of git, a monitor of memory, and a filter of a log."""

from __future__ import annotations

import mmap
import os
import random
import subprocess
import time
from pathlib import Path
from typing import Any, ClassVar

from faults.plan import MS, Span, myself, repeat
from faults.truth import Culprit, Thing, Truth
from lab import UnavailableError, run
from real.scenario import WaitingPlan
from real.sealed.kit import Served, disturb, merged

MIB = 1 << 20
MADV_NOHUGEPAGE, MADV_POPULATE_WRITE = 15, 23
# git tries again after 1, 4, 9, … ms, each 25 % more or less.
RETRY_NS = 250 * MS


class PackedRefs(Served):
    name = "git_packed_refs"
    about = "git deletes a ref, and retries for the lock of packed-refs while another git packs all"
    packages: ClassVar[dict[str, str]] = {"git": "git"}

    def setup(self) -> None:
        self.folder = self.log("shop.git")
        commit = make_repository(self.folder, self.plan.whole(15, 30) * 1000)
        self.victim = self.client("reviews", delete_refs, self.folder, commit)
        self.other = self.client("maintenance", pack_refs, self.folder)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        victim, other = self.victim.result(), self.other.result()
        names = ["polling", "lock_file", "cpu_running", "timer_sleep"]
        culprit = Culprit("process", "git", names, other["gits"][0])
        culprit.also = [*other["gits"][1:], other["pid"]]
        culprit.middlemen = ["git"]
        culprit.objects = [Thing("file", str(self.folder / "packed-refs.lock"))]
        # The pause before the last attempt has the same cause.
        spans = merged([(begin, end + RETRY_NS) for begin, end in other["spans"]])
        return self.slowed(victim, "wait4", spans, culprit)


def git(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    command = ["git", f"--git-dir={folder}", *words]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def make_repository(folder: Path, changes: int) -> str:
    """A repository with one commit and a ref for each change, as Gerrit has; the commit."""
    run("git", "init", "-q", "--bare", folder)
    settings = {"core.packedRefsTimeout": "30000", "core.fsync": "none", "gc.auto": "0"}
    settings.update({"user.name": "shop", "user.email": "shop@localhost"})
    for name, value in settings.items():
        run("git", f"--git-dir={folder}", "config", name, value)
    tree = run("git", f"--git-dir={folder}", "hash-object", "-t", "tree", "-w", "/dev/null")
    commit = run("git", f"--git-dir={folder}", "commit-tree", "-m", "first", tree)
    for number in range(changes):
        place = folder / f"refs/changes/{number % 100:02}"
        place.mkdir(parents=True, exist_ok=True)
        (place / str(number)).write_text(commit + "\n")
    return commit


def delete_refs(plan: WaitingPlan, folder: Path, commit: str) -> dict[str, Any]:
    """The victim: makes and deletes a ref of a review; only the deletion needs the lock."""
    plan.wait()
    spans = []
    while not plan.is_over():
        git(folder, "update-ref", "refs/heads/review", commit).wait()
        begin = time.monotonic_ns()
        status = git(folder, "update-ref", "-d", "refs/heads/review").wait()
        spans.append((begin, time.monotonic_ns()))
        if status != 0:
            raise RuntimeError(f"git exited with status {status}")
        time.sleep(0.02)
    return {**myself(), "spans": spans}


def pack_refs(plan: WaitingPlan, folder: Path) -> dict[str, Any]:
    """Packs all refs while the fault should be active, as scheduled maintenance does."""
    gits = []

    def act() -> None:
        gits.append(git(folder, "pack-refs", "--all", "--no-prune"))
        gits[-1].wait()

    result = disturb(plan, act, 0.3)
    return {**result, "gits": [one.pid for one in gits]}


class MemoryMonitor(Served):
    name = "pmap_monitor"
    about = "a service's mmap waits while pmap reads the page tables of its large cache"
    packages: ClassVar[dict[str, str]] = {"pmap": "procps"}

    def setup(self) -> None:
        mib = self.plan.whole(1800, 2600)
        if available_mib() < 2 * mib:
            raise UnavailableError(f"needs {2 * mib} MiB of memory")
        self.victim = self.client("renderer", render, mib)
        self.other = self.client("monitor", measure, self.victim.pid)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        victim, other = self.victim.result(), self.other.result()
        names = ["lock_kernel", "cpu_running", "kernel_wait"]
        culprit = Culprit("process", "pmap", names, other["pmaps"][0])
        culprit.also = [*other["pmaps"][1:], other["pid"]]
        culprit.objects = [Thing("file", f"/proc/{victim['pid']}/smaps")]
        return self.slowed(victim, "mmap", other["spans"], culprit)


def available_mib() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) >> 10
    return 0


def render(plan: WaitingPlan, mib: int) -> dict[str, Any]:
    """The victim: has a large cache, and maps a buffer for each picture."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    with mmap.mmap(-1, mib * MIB, flags=flags) as cache:
        cache.madvise(MADV_NOHUGEPAGE)
        cache.madvise(MADV_POPULATE_WRITE)

        def once() -> None:
            with mmap.mmap(-1, MIB, flags=flags) as buffer:
                for at in range(0, MIB, 4096):
                    buffer[at] = 1

        plan.wait()
        return repeat(plan, once, 0.008)


def measure(plan: WaitingPlan, pid: int) -> dict[str, Any]:
    """A monitor that measures the memory of the service again and again."""
    pmaps = []

    def act() -> None:
        words = ["pmap", "-X", str(pid)]
        pmaps.append(subprocess.Popen(words, stdout=subprocess.DEVNULL))
        pmaps[-1].wait()

    result = disturb(plan, act, 0.02)
    return {**result, "pmaps": [one.pid for one in pmaps]}


class NullLogFilter(Served):
    name = "null_log_filter"
    about = "tail and grep pass the errors of a log to an alert service; errors are rare"
    packages: ClassVar[dict[str, str]] = {"tail": "coreutils", "grep": "grep"}
    is_null = True

    def setup(self) -> None:
        log = self.log("shop.txt")
        log.touch()
        (lines, to_grep), (errors, to_alerts) = os.pipe(), os.pipe()
        self.stack.start(["tail", "-n", "0", "-F", log], stdout=to_grep)
        words = ["grep", "--line-buffered", "ERROR"]
        self.stack.start(words, stdin=lines, stdout=to_alerts)
        for end in (lines, to_grep, to_alerts):
            os.close(end)
        self.victim = self.client("alerts", read_errors, errors)
        self.other = self.client("shop", write_lines, log, self.plan.seed)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        self.other.result()
        return self.steady(self.victim.result(), "read")


def read_errors(plan: WaitingPlan, errors: int) -> dict[str, Any]:
    """The victim: waits for each error."""
    plan.wait()
    spans, part = [], b""
    while b"last" not in part:
        begin = time.monotonic_ns()
        part = os.read(errors, 4096)
        if not part:
            raise RuntimeError("grep has ended")
        spans.append((begin, time.monotonic_ns()))
    return {**myself(), "spans": spans}


def write_lines(plan: WaitingPlan, log: Path, seed: int) -> dict[str, Any]:
    """A service that logs each request, and an error at random."""
    dice = random.Random(seed)
    with open(log, "a", buffering=1) as file:
        plan.wait()

        def once() -> None:
            level = "ERROR" if dice.random() < 0.08 else "INFO"
            file.write(f"{level} request took {dice.randint(1, 90)} ms {'x' * 80}\n")
            time.sleep(dice.expovariate(60))

        result = repeat(plan, once, 0.001)
        file.write("ERROR last\n")
    return result

"""Disk faults: a noisy neighbour, a bad disk, and throttled I/O."""

from __future__ import annotations

import mmap
import os
import threading
import time
from pathlib import Path
from typing import Any

from faults.plan import (
    Plan,
    Span,
    excess,
    myself,
    overlap,
    repeat,
    sleep_until,
    undisturbed,
)
from faults.truth import Culprit, Thing, Truth
from lab import Disk, Lab, UnavailableError, needs

PAGE = 4096
EXT4 = ["-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", "-J", "size=4"]


def buffer(size: int) -> mmap.mmap:
    """Memory that is aligned for direct I/O."""
    return mmap.mmap(-1, size)


def read_at_random(plan: Plan, devices: list[str], pages: int, pause: float) -> dict[str, Any]:
    """Reads from each device in turn; the index of a span gives the device."""
    fds = [os.open(device, os.O_RDONLY | os.O_DIRECT) for device in devices]
    into, count = [buffer(PAGE)], 0

    def read() -> None:
        nonlocal count
        os.preadv(fds[count % len(fds)], into, PAGE * plan.random.randrange(pages))
        count += 1

    return repeat(plan, read, pause)


def neighbour(plan: Plan, device: str) -> dict[str, Any]:
    """Writes as much as possible in each window, with two writes in flight."""
    spans: list[Span] = []

    def write(half: int) -> None:
        fd = os.open(device, os.O_WRONLY | os.O_DIRECT)
        block, at = buffer(1 << 20), 0
        for begin, end in plan.windows:
            sleep_until(begin)
            start = time.monotonic_ns()
            while time.monotonic_ns() < end:
                os.pwritev(fd, [block], (16 + 16 * half + at % 16) << 20)
                at += 1
            if half == 0:
                spans.append((start, time.monotonic_ns()))

    other = threading.Thread(target=write, args=(1,))
    other.start()
    write(0)
    other.join()
    return {**myself(), "spans": spans}


def noisy_neighbour(lab: Lab, plan: Plan) -> Truth:
    disk = lab.disk(64, "serial")
    disk.set(read_us=plan.whole(600, 1500), write_us=500, mib_us=plan.whole(20, 45) * 1000)
    plan.begin()
    victim = lab.start("reader", read_at_random, plan, [disk.device], 2048, 0.008)
    writer = lab.start("bulk-writer", neighbour, plan, disk.device)
    faults = [(begin, end) for begin, end in writer.result()["spans"]]
    result = victim.result()
    culprit = Culprit("process", "bulk-writer", ["block_queue"], writer.pid)
    culprit.objects = [Thing("device", disk.name)]
    truth = Truth(plan, faults, [culprit])
    own = undisturbed(result["spans"], faults)
    for span in result["spans"]:
        truth.add(result, "preadv", span, [excess(span, faults, own)])
    return truth


def bad_disk(lab: Lab, plan: Plan) -> Truth:
    disks = [lab.disk(16) for _ in range(6)]
    usual, slow = 300, plan.whole(9, 20) * 1000
    for disk in disks:
        disk.set(read_us=usual)
    place = plan.whole(0, 5)
    bad = disks[place]
    plan.begin()
    devices = [disk.device for disk in disks]
    victim = lab.start("reader", read_at_random, plan, devices, 4096, 0.0005)
    on = {"slow_us": slow, "slow_every": 5}
    faults = plan.switch(lambda: bad.set(**on), lambda: bad.set(slow_us=0, slow_every=0))
    result = victim.result()
    culprit = Culprit("device", bad.name, ["misbehaving_disk", "block_service"])
    culprit.objects = [Thing("device", bad.name)]
    culprit.observations = ["misbehaving_disk", "one_device"]
    truth = Truth(plan, faults, [culprit])
    own = undisturbed(result["spans"], faults)
    for number, span in enumerate(result["spans"]):
        # The disk itself is slow: all time beyond the usual is its own.
        blame = excess(span, faults, own) if number % 6 == place else 0
        truth.add(result, "preadv", span, [blame])
    return truth


def fsync_neighbour(lab: Lab, plan: Plan) -> Truth:
    disk = lab.disk(128, "serial")
    folder = lab.mount(disk, "ext4", *EXT4)
    disk.set(read_us=500, write_us=1500, mib_us=plan.whole(15, 30) * 1000)
    plan.begin()
    victim = lab.start("database", commit, plan, folder / "wal")
    guilty = lab.start("mail-queue", flush, plan, folder / "queue", plan.whole(1, 3))
    faults = [(begin, end) for begin, end in guilty.result()["spans"]]
    result = victim.result()
    names = ["journal_wait", "block_queue", "sync_storm"]
    culprit = Culprit("process", "mail-queue", names, guilty.pid)
    culprit.objects = [Thing("device", disk.name), Thing("journal", disk.name)]
    culprit.objects.append(Thing("file", str(folder / "queue")))
    culprit.near = ["jbd2/*"]
    culprit.observations = ["fsync_neighbour"]
    truth = Truth(plan, faults, [culprit])
    own = undisturbed(result["spans"], faults)
    for span in result["spans"]:
        truth.add(result, "fsync", span, [excess(span, faults, own)])
    return truth


def commit(plan: Plan, path: Path) -> dict[str, Any]:
    """Writes small records, each followed by fsync."""
    fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)

    def once() -> None:
        os.write(fd, b"r" * 300)
        os.fsync(fd)

    return repeat(plan, once, 0.02)


def flush(plan: Plan, path: Path, mib: int) -> dict[str, Any]:
    fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    spans, number = [], 0
    for begin, end in plan.windows:
        sleep_until(begin)
        start = time.monotonic_ns()
        while time.monotonic_ns() < end:
            for part in range(mib):
                os.pwrite(fd, b"q" * (1 << 20), ((number * mib + part) % 32) << 20)
            os.fsync(fd)
            number += 1
        spans.append((start, time.monotonic_ns()))
    return {**myself(), "spans": spans}


def log_flood(lab: Lab, plan: Plan) -> Truth:
    disk = lab.disk(192, "serial")
    folder = lab.mount(disk, "ext4", *EXT4)
    allow_dirty(lab, disk, 8 << 20)
    disk.set(write_us=500, mib_us=plan.whole(40, 90) * 1000)
    plan.begin()
    path = folder / "debug.log"
    actor = lab.start("webapp", log, plan, path)
    result = actor.result()
    culprit = Culprit("own", "webapp", ["dirty_throttle", "writeback_wait"], actor.pid)
    culprit.objects = [Thing("file", str(path)), Thing("device", disk.name)]
    culprit.near = [disk.name, "kworker/*flush*"]
    culprit.observations = ["log_flood"]
    truth = Truth(plan, plan.windows, [culprit])
    own = undisturbed(result["spans"], plan.windows)
    for span in result["spans"]:
        truth.add(result, "write", span, [excess(span, plan.windows, own)])
    return truth


def allow_dirty(lab: Lab, disk: Disk, bytes_max: int) -> None:
    """Limits the dirty bytes of a disk, independent of the machine's memory."""
    folder = Path(f"/sys/class/bdi/{disk.number}")
    if not (folder / "max_ratio_fine").exists():
        raise UnavailableError("the kernel cannot limit dirty pages of one device (before 6.2)")
    # Restore the limit as a share: the one in bytes depends on the free memory at the time.
    for name in ("max_ratio_fine", "strict_limit"):
        lab.will_undo("setting", str(folder / name), (folder / name).read_text().strip())
    (folder / "strict_limit").write_text("1")
    (folder / "max_bytes").write_text(str(bytes_max))


def log(plan: Plan, path: Path) -> dict[str, Any]:
    """Writes a line every 20 ms, or without pause while the fault is active."""
    fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    spans, line, at = [], b"debug " * 10922, 0
    while not plan.is_over():
        begin = time.monotonic_ns()
        os.pwrite(fd, line, at)
        spans.append((begin, time.monotonic_ns()))
        at = (at + len(line)) % (96 << 20)
        if not plan.is_on():
            time.sleep(0.02)
    return {**myself(), "spans": spans}


def held_io(lab: Lab, plan: Plan) -> Truth:
    needs()
    disk = lab.disk(16)
    disk.set(read_us=500)
    root = Path("/sys/fs/cgroup/blkio")
    if not (root / "blkio.throttle.read_iops_device").exists():
        raise UnavailableError("there is no blkio controller of cgroup v1")
    group = root / f"whyslow-lab-{os.getpid()}"
    lab.will_undo("cgroup", str(group))
    group.mkdir()
    limit = group / "blkio.throttle.read_iops_device"
    plan.begin()
    victim = lab.start("container", read_in_group, plan, disk.device, group)
    iops = plan.whole(8, 16)
    faults = plan.switch(
        lambda: limit.write_text(f"{disk.number} {iops}"),
        lambda: limit.write_text(f"{disk.number} 0"),
    )
    result = victim.result()
    culprit = Culprit("cgroup", group.name, ["block_held"], near=["container", disk.name])
    culprit.objects = [Thing("device", disk.name), Thing("cgroup", group.name)]
    truth = Truth(plan, faults, [culprit])
    own = undisturbed(result["spans"], faults)
    for begin, end in result["spans"]:
        # Requests that were throttled when the limit was lifted continue shortly after.
        blame = max(0, end - begin - own) if overlap((begin, end), faults) else 0
        truth.add(result, "preadv", (begin, end), [blame])
    return truth


def read_in_group(plan: Plan, device: str, group: Path) -> dict[str, Any]:
    (group / "cgroup.procs").write_text(str(os.getpid()))
    return read_at_random(plan, [device], 4096, 0.01)

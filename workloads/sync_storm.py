"""A process flushes megabytes to a slow disk, and a service that creates small files stalls.

The journal of the file system commits the flushed data. An open() that creates a file meanwhile
needs a block that is being written, and waits for it. The stalled thread and its file have almost
no I/O of their own.
"""

from __future__ import annotations

import mmap
import os
import statistics
import struct
import time
from pathlib import Path
from typing import Any

from lab import LIBC, Lab, next_prime

SESSION = b"x" * 97
MIB = 6
WRITE_US = 400_000
# Minimum duration of a stall; normally an open takes microseconds.
STALL_NS = 250_000_000
ROUNDS_MAX = 12
# Layout of the shared memory: stop flag, number of stalled opens, start and duration of each.
STOP, STALLS, FIRST_STALL = 0, 8, 16
STALLS_MAX = 64


def serve(folder: Path, shared: mmap.mmap) -> dict[str, Any]:
    took, stalls, slowest, number = [], [], (0, 0, ""), 0
    goal = None
    while goal is None or number < goal:
        path = str(folder / f"sess_{number:06d}")
        begin = time.time_ns()
        start = time.perf_counter_ns()
        fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        dur = time.perf_counter_ns() - start
        os.write(fd, SESSION)
        os.close(fd)
        os.unlink(path)
        number += 1
        took.append(dur)
        slowest = max(slowest, (dur, begin, path))
        if dur >= STALL_NS and len(stalls) < STALLS_MAX:
            struct.pack_into("=QQ", shared, FIRST_STALL + 16 * len(stalls), begin, dur)
            stalls.append({"file": path, "begin_ns": begin, "dur_ns": dur})
            struct.pack_into("=Q", shared, STALLS, len(stalls))
        if goal is None and shared[STOP]:
            goal = next_prime(number)
        time.sleep(0.002)
    return {
        "pid": os.getpid(),
        "comm": "sessiond",
        "opens": number,
        "bytes": number * len(SESSION),
        "open_ns_median": int(statistics.median(took)),
        "slowest_open": {"dur_ns": slowest[0], "begin_ns": slowest[1], "file": slowest[2]},
        "stalls": stalls,
    }


def overlap(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two calls overlap."""
    begin = max(one["begin_ns"], other["begin_ns"])
    return begin < min(one["begin_ns"] + one["dur_ns"], other["begin_ns"] + other["dur_ns"])


def has_stalled(shared: mmap.mmap, sync: dict[str, Any]) -> bool:
    """Whether an open stalled during this sync."""
    count = struct.unpack_from("=Q", shared, STALLS)[0]
    stalls = (struct.unpack_from("=QQ", shared, FIRST_STALL + 16 * at) for at in range(count))
    return any(overlap({"begin_ns": begin, "dur_ns": dur}, sync) for begin, dur in stalls)


def storm(folder: Path, shared: mmap.mmap, seconds: float) -> dict[str, Any]:
    syncs, block = [], b"\xa5" * (1 << 20)
    deadline = time.monotonic() + seconds
    target = folder / "backup"
    while len(syncs) < ROUNDS_MAX:
        # Truncating the file instead would flush it on close.
        target.unlink(missing_ok=True)
        fd = os.open(target, os.O_CREAT | os.O_WRONLY, 0o600)
        for _ in range(MIB):
            os.write(fd, block)
        begin = time.time_ns()
        start = time.perf_counter_ns()
        if LIBC.syncfs(fd) != 0:
            raise RuntimeError("syncfs failed")
        syncs.append({"begin_ns": begin, "dur_ns": time.perf_counter_ns() - start})
        os.close(fd)
        time.sleep(0.3)
        if has_stalled(shared, syncs[-1]) or time.monotonic() > deadline:
            break
    return {
        "pid": os.getpid(),
        "comm": "nightly-backup",
        "bytes": len(syncs) * MIB << 20,
        "syncs": syncs,
    }


def work(lab: Lab, seconds: float) -> dict[str, Any]:
    disk = lab.disk(96)
    options = ["-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", "-J", "size=4"]
    folder = lab.mount(disk, "ext4", *options)
    sessions = folder / "sessions"
    sessions.mkdir()
    shared = mmap.mmap(-1, 4096)
    service = lab.start("sessiond", serve, sessions, shared)
    time.sleep(0.5)
    disk.set(write_us=WRITE_US)
    guilty = lab.start("nightly-backup", storm, folder, shared, seconds).result()
    disk.set(write_us=0)
    shared[STOP] = 1
    served = service.result()
    stalled = [
        stall for stall in served["stalls"] if any(overlap(stall, sync) for sync in guilty["syncs"])
    ]
    stalled.sort(key=lambda stall: -stall["dur_ns"])
    return {"disk": disk.name, "service": served, "guilty": guilty, "stalled": stalled}

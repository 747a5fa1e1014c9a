"""A large file that is not in the page cache is sent, and writes to the same file stall.

XFS holds the inode lock while it reads for sendfile(), and the disk is slow. A write needs the
lock exclusively, although it only goes to the page cache. The writing thread holds a user-space
lock meanwhile, for which a producer waits.
"""

from __future__ import annotations

import mmap
import os
import socket
import threading
import time
from pathlib import Path
from typing import Any

from lab import Lab, next_prime

MIB = 4
WRITE = b"w" * 512
READ_US = 400_000
# Minimum duration of a stall; normally a write takes microseconds.
STALL_NS = 50_000_000
READY, STOP = 0, 1


def drain(end: socket.socket) -> None:
    while end.recv(1 << 16):
        pass


def send(path: Path, shared: mmap.mmap) -> dict[str, Any]:
    ours, theirs = socket.socketpair()
    reader = threading.Thread(target=drain, args=(theirs,))
    reader.start()
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    shared[READY] = 1
    begin = time.time_ns()
    start = time.perf_counter_ns()
    sent = calls = 0
    while sent < MIB << 20:
        sent += os.sendfile(ours.fileno(), fd, sent, (MIB << 20) - sent)
        calls += 1
    dur = time.perf_counter_ns() - start
    ours.close()
    reader.join()
    shared[STOP] = 1
    return {
        "pid": os.getpid(),
        "comm": "downloadd",
        "begin_ns": begin,
        "dur_ns": dur,
        "bytes": sent,
        "calls": calls,
    }


class Producer(threading.Thread):
    """Takes the lock of the writer again and again."""

    def __init__(self, lock: threading.Lock) -> None:
        super().__init__()
        self.lock = lock
        self.is_over = False
        self.result: dict[str, Any] = {"comm": "producer", "stalls": []}

    def run(self) -> None:
        tid = threading.get_native_id()
        self.result["tid"] = tid
        Path(f"/proc/self/task/{tid}/comm").write_text("producer")
        while not self.is_over:
            begin = time.time_ns()
            start = time.perf_counter_ns()
            with self.lock:
                pass
            dur = time.perf_counter_ns() - start
            if dur >= STALL_NS:
                self.result["stalls"].append({"begin_ns": begin, "dur_ns": dur})
            time.sleep(0.01)


def write(path: Path, shared: mmap.mmap) -> dict[str, Any]:
    fd = os.open(path, os.O_WRONLY)
    lock = threading.Lock()
    producer = Producer(lock)
    producer.start()
    while not shared[READY]:
        time.sleep(0.005)
    number, goal, slowest, stalls = 0, None, (0, 0), []
    while goal is None or number < goal:
        begin = time.time_ns()
        start = time.perf_counter_ns()
        with lock:
            os.pwrite(fd, WRITE, number * len(WRITE))
        dur = time.perf_counter_ns() - start
        slowest = max(slowest, (dur, begin))
        if dur >= STALL_NS:
            stalls.append({"begin_ns": begin, "dur_ns": dur})
        number += 1
        if goal is None and shared[STOP]:
            goal = next_prime(max(number, 97))
        time.sleep(0.01)
    producer.is_over = True
    producer.join()
    return {
        "pid": os.getpid(),
        "comm": "appender",
        "producer": producer.result,
        "writes": number,
        "bytes": number * len(WRITE),
        "stalls": stalls,
        "slowest_write": {"dur_ns": slowest[0], "begin_ns": slowest[1]},
    }


def work(lab: Lab, seconds: float) -> dict[str, Any]:
    del seconds  # ends when the file is sent
    disk = lab.disk(400)
    folder = lab.mount(disk, "xfs", "-K")
    path = folder / "film.bin"
    with open(path, "wb") as file:
        file.write(os.urandom(1 << 20) * MIB)
        os.fsync(file.fileno())
    shared = mmap.mmap(-1, 4096)
    disk.set(read_us=READ_US)
    victim = lab.start("appender", write, path, shared)
    guilty = lab.start("downloadd", send, path, shared).result()
    disk.set(read_us=0)
    return {"disk": disk.name, "file": str(path), "guilty": guilty, "victim": victim.result()}

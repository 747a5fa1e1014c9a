"""Load without a fault: naming a culprit is wrong."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path
from typing import Any

from faults.disks import read_at_random
from faults.plan import Plan, act, repeat
from faults.truth import Truth
from lab import Lab

PAGE = 4096


def steady(plan: Plan, result: dict[str, Any], call: str) -> Truth:
    truth = Truth(plan, [], [])
    truth.needs_quiet = True
    for begin, end in result["spans"]:
        truth.add(result, call, (begin, end), [])
    return truth


def computing(lab: Lab, plan: Plan) -> Truth:
    plan.begin()
    victim = act(lab, plan, "work", f"work_us={plan.whole(2, 6) * 1000}", "pause_us=8000")
    return steady(plan, {**victim.result()["victim"], "pid": victim.pid}, "")


def cached_files(lab: Lab, plan: Plan) -> Truth:
    path = lab.folder / "data"
    path.write_bytes(os.urandom(8 << 20))
    plan.begin()
    return steady(plan, lab.start("indexer", use_file, plan, path).result(), "pread64")


def use_file(plan: Plan, path: Path) -> dict[str, Any]:
    fd = os.open(path, os.O_RDWR)

    def once() -> None:
        at = plan.random.randrange(2000) * PAGE
        block = os.pread(fd, 16 * PAGE, at)
        os.pwrite(fd, block[:PAGE], at)

    return repeat(plan, once, 0.004)


def messages(lab: Lab, plan: Plan) -> Truth:
    plan.begin()
    ours, theirs = socket.socketpair()
    server = lab.start("echo", echo, plan, theirs)
    result = lab.start("client", send_messages, plan, ours).result()
    server.result()
    return steady(plan, result, "recvfrom")


def echo(plan: Plan, end: socket.socket) -> int:
    end.settimeout(0.2)
    count = 0
    while not plan.is_over():
        try:
            end.send(end.recv(PAGE))
            count += 1
        except socket.timeout:
            continue
    return count


def send_messages(plan: Plan, end: socket.socket) -> dict[str, Any]:
    def once() -> None:
        end.send(b"m" * 200)
        end.recv(PAGE)

    return repeat(plan, once, 0.003)


def healthy_disk(lab: Lab, plan: Plan) -> Truth:
    disk = lab.disk(16)
    disk.set(read_us=plan.whole(500, 3000))
    plan.begin()
    victim = lab.start("reader", read_at_random, plan, [disk.device], 4096, 0.005)
    return steady(plan, victim.result(), "preadv")


def short_locks(lab: Lab, plan: Plan) -> Truth:
    plan.begin()
    return steady(plan, lab.start("service", take_turns, plan).result(), "futex")


def take_turns(plan: Plan) -> dict[str, Any]:
    """Two threads that take a lock in turn, for a short time."""
    lock = threading.Lock()

    def once() -> None:
        with lock:
            sum(range(3_000))

    other = threading.Thread(target=repeat, args=(plan, once, 0.003))
    other.start()
    result = repeat(plan, once, 0.003)
    other.join()
    return result

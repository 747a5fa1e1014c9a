"""Threads that hold a user-space lock while others wait for it."""

from __future__ import annotations

from typing import Any

from faults.disks import neighbour
from faults.plan import Plan, Span, act, excess, overlap, undisturbed
from faults.truth import Culprit, Thing, Truth
from lab import Lab


def spans_of(result: dict[str, Any], key: str) -> list[Span]:
    return [(begin, end) for begin, end in result[key]["spans"]]


def thread(result: dict[str, Any], key: str, pid: int, meanwhile: str) -> Culprit:
    """A thread that holds the lock, and the mechanism of what it does meanwhile."""
    actor = result[key]
    culprit = Culprit("process", actor["comm"], ["lock_futex", meanwhile], pid, actor["tid"])
    culprit.objects = [Thing("futex", result["lock"]), Thing("lock", result["lock"])]
    return culprit


def of_waiters(plan: Plan, result: dict[str, Any], pid: int, count: int) -> Truth:
    """Splits each wait among the holders of the lock over time; the truth is exact."""
    keys = ["holder"] + (["intruder"] if "intruder" in result else [])
    culprits = [thread(result, "holder", pid, "timer_sleep")]
    if "intruder" in result:
        culprits.append(thread(result, "intruder", pid, "cpu_running"))
    keys += [f"holds{n}" for n in range(count)]
    culprits += [thread(result, f"holds{n}", pid, "cpu_running") for n in range(count)]
    holds = [spans_of(result, key) for key in keys]
    truth = Truth(plan, plan.windows, culprits)
    for n in range(count):
        victim = {**result[f"waits{n}"], "pid": pid}
        for span in spans_of(result, f"waits{n}"):
            # A thread does not wait for itself.
            blame = [
                0 if key == f"holds{n}" else overlap(span, held) for key, held in zip(keys, holds)
            ]
            truth.add(victim, "futex", span, blame)
    return truth


def futex_convoy(lab: Lab, plan: Plan) -> Truth:
    count, hold = 3, plan.whole(60, 110) * 1000
    plan.begin()
    words = [f"waiters={count}", f"hold_us={hold}", f"gap_us={plan.whole(30, 60) * 1000}"]
    actor = act(lab, plan, "lock", *words)
    return of_waiters(plan, actor.result(), actor.pid, count)


def barging(lab: Lab, plan: Plan) -> Truth:
    count, hold = 3, plan.whole(60, 110) * 1000
    plan.begin()
    words = [f"waiters={count}", f"hold_us={hold}", "gap_us=20000", "intruder=1"]
    actor = act(lab, plan, "lock", *words)
    return of_waiters(plan, actor.result(), actor.pid, count)


def stop_barrier(lab: Lab, plan: Plan) -> Truth:
    count = 2
    plan.begin()
    words = [f"waiters={count}", f"stop_us={plan.whole(300, 450) * 1000}"]
    actor = act(lab, plan, "barrier", *words)
    result = actor.result()
    stops = spans_of(result, "holder")
    culprit = thread(result, "holder", actor.pid, "cpu_running")
    truth = Truth(plan, stops, [culprit])
    for n in range(count):
        victim = {**result[f"waits{n}"], "pid": actor.pid}
        for span in spans_of(result, f"waits{n}"):
            truth.add(victim, "futex", span, [overlap(span, stops)])
    return truth


def two_faults(lab: Lab, plan: Plan) -> Truth:
    """A disk that a neighbour keeps busy, and a lock: each wait includes both."""
    disk = lab.disk(64, "serial")
    mib_us = plan.whole(25, 45) * 1000
    disk.set(read_us=1000, write_us=1000, mib_us=mib_us)
    count, hold = 2, plan.whole(40, 160) * 1000
    plan.begin()
    words = [f"waiters={count}", f"hold_us={hold}", f"gap_us={plan.whole(60, 120) * 1000}"]
    actor = act(lab, plan, "lock", *words, f"disk={disk.device}", "sectors=2048")
    writer = lab.start("bulk-writer", neighbour, plan, disk.device)
    writes = [(begin, end) for begin, end in writer.result()["spans"]]
    result = actor.result()
    of_lock = thread(result, "holder", actor.pid, "timer_sleep")
    of_disk = Culprit("process", "bulk-writer", ["block_queue"], writer.pid)
    of_disk.objects = [Thing("device", disk.name)]
    truth = Truth(plan, plan.windows, [of_lock, of_disk])
    held = spans_of(result, "holder")
    for n in range(count):
        victim = {**result[f"waits{n}"], "pid": actor.pid}
        spans = spans_of(result, f"waits{n}")
        reads = spans_of(result, f"reads{n}")
        own = undisturbed(reads, plan.windows)
        for span, read in zip(spans, reads):
            locked = overlap((read[1], span[1]), held)
            truth.add(victim, "pread64", span, [locked, excess(read, writes, own)])
    return truth

"""What a program does to itself: temporary files, a sleep nobody remembers; and older workloads."""

from __future__ import annotations

import queue
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import cold_sendfile
import sync_storm
import temp_files
from faults.plan import Plan, Span, excess, repeat
from faults.truth import Culprit, Thing, Truth
from lab import Lab, name_thread


def temporary_files(lab: Lab, plan: Plan) -> Truth:
    parent = Path("/tmp") / f"lab-{uuid.uuid4()}"
    lab.will_undo("folder", str(parent))
    parent.mkdir()
    temp_files.FILES = plan.whole(700, 1000)
    plan.begin()
    actor = lab.start("webapp", thumbnails, plan, parent)
    told = actor.result()
    mechanisms = ["temporary_files"]
    culprit = Culprit("process", "thumbnailer", mechanisms, actor.pid, told["worker"])
    culprit.objects = [Thing("file", f"{parent}/*"), Thing("any", str(parent))]
    culprit.findings = ["temporary_files"]
    truth = Truth(plan, plan.windows, [culprit])
    for span, churned in zip(told["spans"], told["churned"]):
        truth.add(told, "futex", span, [churned])
    return truth


def thumbnails(plan: Plan, parent: Path) -> dict[str, Any]:
    """Requests that wait for a thread, which makes files while the fault is there."""
    wanted: queue.Queue[Path | None] = queue.Queue()
    done: queue.Queue[int] = queue.Queue()

    def make() -> None:
        name_thread("thumbnailer")
        while (folder := wanted.get()) is not None:
            begin = time.monotonic_ns()
            if plan.is_on():
                temp_files.churn(folder)
            done.put(time.monotonic_ns() - begin)

    worker = threading.Thread(target=make)
    worker.start()
    churned: list[int] = []

    def ask() -> None:
        wanted.put(parent / str(uuid.uuid4()))
        churned.append(done.get())

    told = repeat(plan, ask, 0.03)
    wanted.put(None)
    worker.join()
    return {**told, "worker": worker.native_id, "churned": churned}


def hidden_sleep(lab: Lab, plan: Plan) -> Truth:
    nap = plan.whole(30, 90) / 1000
    plan.begin()
    actor = lab.start("webapp", sometimes_sleep, plan, nap)
    told = actor.result()
    culprit = Culprit("own", "webapp", ["timer_sleep"], actor.pid)
    culprit.near = ["timer", "clock_nanosleep*"]
    truth = Truth(plan, plan.windows, [culprit])
    for span, slept in zip(told["spans"], told["slept"]):
        truth.add(told, "clock_nanosleep", span, [slept])
    return truth


def sometimes_sleep(plan: Plan, nap: float) -> dict[str, Any]:
    slept = []

    def serve() -> None:
        sum(range(30_000))
        begin = time.monotonic_ns()
        if plan.is_on():
            time.sleep(nap)
        slept.append(time.monotonic_ns() - begin)

    return {**repeat(plan, serve, 0.005), "slept": slept}


def stormed(lab: Lab, plan: Plan) -> Truth:
    """The workload `sync_storm`, with its figures from the seed."""
    sync_storm.MIB = plan.whole(4, 7)
    sync_storm.WRITE_US = plan.whole(250, 420) * 1000
    told = sync_storm.work(lab, 6)
    offset = plan.offset
    syncs = [since(sync, offset) for sync in told["guilty"]["syncs"]]
    names = ["sync_storm", "block_queue", "journal_wait"]
    culprit = Culprit("process", "nightly-backup", names, told["guilty"]["pid"])
    culprit.objects = [Thing("device", told["disk"]), Thing("journal", told["disk"])]
    culprit.near = ["jbd2/*"]
    truth = Truth(plan, syncs, [culprit])
    service = {**told["service"], "tid": told["service"]["pid"]}
    for stall in told["service"]["stalls"]:
        span = since(stall, offset)
        truth.add(service, "openat", span, [excess(span, syncs, 0)])
    truth.notes["usual_ns"] = told["service"]["open_ns_median"]
    return truth


def sent_cold(lab: Lab, plan: Plan) -> Truth:
    """The workload `cold_sendfile`, with its figures from the seed."""
    cold_sendfile.READ_US = plan.whole(200, 420) * 1000
    told = cold_sendfile.work(lab, 10)
    offset = plan.offset
    sends = [since(told["guilty"], offset)]
    names = ["lock_inode", "lock_kernel", "block_service", "page_fault_io"]
    culprit = Culprit("process", "downloadd", names, told["guilty"]["pid"])
    culprit.objects = [Thing("file", told["file"]), Thing("device", told["disk"])]
    truth = Truth(plan, sends, [culprit])
    victim = {**told["victim"], "tid": told["victim"]["pid"]}
    for stall in told["victim"]["stalls"]:
        span = since(stall, offset)
        truth.add(victim, "pwrite64", span, [excess(span, sends, 0)])
    return truth


def since(told: dict[str, int], offset: int) -> Span:
    """Of a workload that stamps with the calendar."""
    begin = told["begin_ns"] - offset
    return begin, begin + told["dur_ns"]

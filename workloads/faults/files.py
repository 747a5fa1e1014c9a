"""Faults within a program: temporary files, a forgotten sleep; and the older workloads."""

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
    result = actor.result()
    mechanisms = ["temporary_files"]
    culprit = Culprit("process", "thumbnailer", mechanisms, actor.pid, result["worker"])
    culprit.objects = [Thing("file", f"{parent}/*"), Thing("any", str(parent))]
    culprit.observations = ["temporary_files"]
    truth = Truth(plan, plan.windows, [culprit])
    for span, churned in zip(result["spans"], result["churned"]):
        truth.add(result, "futex", span, [churned])
    return truth


def thumbnails(plan: Plan, parent: Path) -> dict[str, Any]:
    """Requests that wait for a thread, which creates files while the fault is active."""
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

    def request() -> None:
        wanted.put(parent / str(uuid.uuid4()))
        churned.append(done.get())

    result = repeat(plan, request, 0.03)
    wanted.put(None)
    worker.join()
    return {**result, "worker": worker.native_id, "churned": churned}


def hidden_sleep(lab: Lab, plan: Plan) -> Truth:
    nap = plan.whole(30, 90) / 1000
    plan.begin()
    actor = lab.start("webapp", sometimes_sleep, plan, nap)
    result = actor.result()
    culprit = Culprit("own", "webapp", ["timer_sleep"], actor.pid)
    culprit.near = ["timer", "clock_nanosleep*"]
    truth = Truth(plan, plan.windows, [culprit])
    for span, slept in zip(result["spans"], result["slept"]):
        truth.add(result, "clock_nanosleep", span, [slept])
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
    """The workload `sync_storm`, with parameters from the seed."""
    sync_storm.MIB = plan.whole(4, 7)
    sync_storm.WRITE_US = plan.whole(250, 420) * 1000
    result = sync_storm.work(lab, 6)
    offset = plan.offset
    syncs = [since(sync, offset) for sync in result["guilty"]["syncs"]]
    names = ["sync_storm", "block_queue", "journal_wait"]
    culprit = Culprit("process", "nightly-backup", names, result["guilty"]["pid"])
    culprit.objects = [Thing("device", result["disk"]), Thing("journal", result["disk"])]
    culprit.near = ["jbd2/*"]
    truth = Truth(plan, syncs, [culprit])
    service = {**result["service"], "tid": result["service"]["pid"]}
    for stall in result["service"]["stalls"]:
        span = since(stall, offset)
        truth.add(service, "openat", span, [excess(span, syncs, 0)])
    truth.notes["usual_ns"] = result["service"]["open_ns_median"]
    return truth


def sent_cold(lab: Lab, plan: Plan) -> Truth:
    """The workload `cold_sendfile`, with parameters from the seed."""
    cold_sendfile.READ_US = plan.whole(200, 420) * 1000
    result = cold_sendfile.work(lab, 10)
    offset = plan.offset
    sends = [since(result["guilty"], offset)]
    names = ["lock_inode", "lock_kernel", "block_service", "page_fault_io"]
    culprit = Culprit("process", "downloadd", names, result["guilty"]["pid"])
    culprit.objects = [Thing("file", result["file"]), Thing("device", result["disk"])]
    truth = Truth(plan, sends, [culprit])
    victim = {**result["victim"], "tid": result["victim"]["pid"]}
    for stall in result["victim"]["stalls"]:
        span = since(stall, offset)
        truth.add(victim, "pwrite64", span, [excess(span, sends, 0)])
    return truth


def since(timed: dict[str, int], offset: int) -> Span:
    """The span of a workload's wall-clock timestamps."""
    begin = timed["begin_ns"] - offset
    return begin, begin + timed["dur_ns"]

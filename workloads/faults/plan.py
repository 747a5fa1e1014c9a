"""Active windows of a fault, and the timestamps of its victims.

Timestamps are CLOCK_MONOTONIC during a run, so that clock steps do no harm. The ground truth is in
ns since the epoch, by one reading of both clocks.
"""

from __future__ import annotations

import os
import random
import statistics
import threading
import time
from pathlib import Path
from typing import Any, Callable

from lab import Actor, Lab, needs, run

Span = tuple[int, int]
MS = 1_000_000
SECOND = 1_000_000_000
# Time for all actors to start.
LEAD_NS = 700 * MS


class Plan:
    """Windows in which the fault is active, with about the same time without it."""

    def __init__(self, seed: int, on: tuple[float, float] = (1.0, 1.6), rounds: int = 2) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        lengths = [(self.random.uniform(0.8, 1.2), self.random.uniform(*on)) for _ in range(rounds)]
        self._lengths = lengths
        self.offset = calendar_offset()
        self.windows: list[Span] = []
        self.until = 0

    def begin(self) -> Plan:
        """Starts the schedule; call this after the setup."""
        at = time.monotonic_ns() + LEAD_NS
        for off, on in self._lengths:
            at += int(off * SECOND)
            self.windows.append((at, at + int(on * SECOND)))
            at = self.windows[-1][1]
        self.until = at + 500 * MS
        return self

    def pick(self, low: float, high: float) -> float:
        return self.random.uniform(low, high)

    def whole(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def is_over(self) -> bool:
        return time.monotonic_ns() >= self.until

    def is_on(self) -> bool:
        now = time.monotonic_ns()
        return any(begin <= now < end for begin, end in self.windows)

    def switch(self, on: Callable[[], Any], off: Callable[[], Any]) -> list[Span]:
        """Turns a fault on and off as planned; the spans in which it was active."""
        spans = []
        for begin, end in self.windows:
            sleep_until(begin)
            on()
            start = time.monotonic_ns()
            sleep_until(end)
            ended = time.monotonic_ns()
            off()
            spans.append((start, ended))
        sleep_until(self.until)
        return spans

    def words(self) -> list[str]:
        """Arguments for `actors.c`."""
        windows = ",".join(f"{begin}:{end}" for begin, end in self.windows)
        return [f"until={self.until}", f"on={windows}", f"seed={self.seed}"]


def calendar_offset() -> int:
    """Offset from CLOCK_MONOTONIC to the epoch, from the reading with the shortest interval."""
    best = (SECOND, 0)
    for _ in range(20):
        before = time.monotonic_ns()
        real = time.time_ns()
        after = time.monotonic_ns()
        best = min(best, (after - before, real - (before + after) // 2))
    return best[1]


def sleep_until(deadline: int) -> None:
    while (left := deadline - time.monotonic_ns()) > 0:
        time.sleep(left / SECOND)


def repeat(plan: Plan, act: Callable[[], Any], pause: float) -> dict[str, Any]:
    """A victim: repeats an action, and records the span of each."""
    spans = []
    while not plan.is_over():
        begin = time.monotonic_ns()
        act()
        spans.append((begin, time.monotonic_ns()))
        time.sleep(pause)
    return {**myself(), "spans": spans}


def myself() -> dict[str, Any]:
    comm = Path("/proc/thread-self/comm").read_text().strip()
    return {"pid": os.getpid(), "tid": threading.get_native_id(), "comm": comm}


def actors(lab: Lab) -> Path:
    """Compiles `actors.c`; the path of the program."""
    needs("cc")
    binary = lab.folder / "actors"
    if not binary.exists():
        source = Path(__file__).with_name("actors.c")
        run("cc", "-O2", "-o", binary, source, "-lpthread")
    return binary


def act(lab: Lab, plan: Plan, what: str, *words: str, prefix: tuple[str, ...] = ()) -> Actor:
    """Starts one of the actors in C as a process."""
    command = [*prefix, str(actors(lab)), what, *plan.words(), *words]
    return lab.start_program(what, command)


def overlap(one: Span, others: list[Span]) -> int:
    """Overlap of a span with others, which are disjoint."""
    return sum(max(0, min(one[1], end) - max(one[0], begin)) for begin, end in others)


def undisturbed(spans: list[Span], faults: list[Span]) -> int:
    """Median duration of the spans outside of the fault."""
    alone = [end - begin for begin, end in spans if overlap((begin, end), faults) == 0]
    return int(statistics.median(alone)) if alone else 0


def excess(span: Span, faults: list[Span], own: int) -> int:
    """Time beyond the usual duration, at most the overlap with the fault."""
    return max(0, min(overlap(span, faults), span[1] - span[0] - own))

"""When a fault is there and when it is not, and what the victims of it say.

All stamps are of CLOCK_MONOTONIC while things happen, so that a clock that is set harms nothing;
the truth is told in ns since the epoch, by one reading of both clocks.
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
# Until everybody has begun.
LEAD_NS = 700 * MS


class Plan:
    """Windows in which the fault is there, with as much time without it."""

    def __init__(self, seed: int, on: tuple[float, float] = (1.0, 1.6), rounds: int = 2) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        lengths = [(self.random.uniform(0.8, 1.2), self.random.uniform(*on)) for _ in range(rounds)]
        self._lengths = lengths
        self.offset = calendar_offset()
        self.windows: list[Span] = []
        self.until = 0

    def begin(self) -> Plan:
        """From now on time passes: to be called when everything is made."""
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
        """Turns a fault on and off as planned; when it was there."""
        spans = []
        for begin, end in self.windows:
            sleep_until(begin)
            on()
            begun = time.monotonic_ns()
            sleep_until(end)
            ended = time.monotonic_ns()
            off()
            spans.append((begun, ended))
        sleep_until(self.until)
        return spans

    def words(self) -> list[str]:
        """As `actors.c` takes it."""
        windows = ",".join(f"{begin}:{end}" for begin, end in self.windows)
        return [f"until={self.until}", f"on={windows}", f"seed={self.seed}"]


def calendar_offset() -> int:
    """What is to be added to CLOCK_MONOTONIC, by the reading that was disturbed least."""
    best = (SECOND, 0)
    for _ in range(20):
        before = time.monotonic_ns()
        real = time.time_ns()
        after = time.monotonic_ns()
        best = min(best, (after - before, real - (before + after) // 2))
    return best[1]


def sleep_until(moment: int) -> None:
    while (left := moment - time.monotonic_ns()) > 0:
        time.sleep(left / SECOND)


def repeat(plan: Plan, act: Callable[[], Any], pause: float) -> dict[str, Any]:
    """A victim: does something again and again, and stamps each time."""
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
    """The program of `actors.c`."""
    needs("cc")
    binary = lab.folder / "actors"
    if not binary.exists():
        source = Path(__file__).with_name("actors.c")
        run("cc", "-O2", "-o", binary, source, "-lpthread")
    return binary


def act(lab: Lab, plan: Plan, what: str, *words: str, prefix: tuple[str, ...] = ()) -> Actor:
    """One of the actors in C, as a process of its own."""
    command = [*prefix, str(actors(lab)), what, *plan.words(), *words]
    return lab.start_program(what, command)


def overlap(one: Span, others: list[Span]) -> int:
    """How much of a span lies in others, which do not overlap each other."""
    return sum(max(0, min(one[1], end) - max(one[0], begin)) for begin, end in others)


def undisturbed(spans: list[Span], faults: list[Span]) -> int:
    """What it takes in the middle while the fault is not there."""
    alone = [end - begin for begin, end in spans if overlap((begin, end), faults) == 0]
    return int(statistics.median(alone)) if alone else 0


def excess(span: Span, faults: list[Span], own: int) -> int:
    """What is beyond its own time, as far as the fault was there."""
    return max(0, min(overlap(span, faults), span[1] - span[0] - own))

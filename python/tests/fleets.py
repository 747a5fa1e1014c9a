"""A small fleet with all cases that queries must handle, for tests on every engine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from lakes import SECOND, T0, LakeMaker, Operations, Pushed

SECONDS = 16
#: Quotes, line breaks, SQL injection, and characters beyond the BMP.
HOSTILE = "x'; DROP TABLE rollup; --\n\"\\%_💥"
BAD_TAIL, BAD_MEDIAN = "web-03", "web-04"
SHIFT_FROM = 8


def drawn(rng: np.random.Generator, kind: str, op: str, middle: float, rate: int) -> Operations:
    count = rng.poisson(rate * SECONDS)
    ts = T0 + rng.integers(SECONDS * SECOND, size=count)
    dur = rng.lognormal(np.log(middle), 0.7, count).astype(np.int64)
    return Operations(kind, op, ts, dur)


def write(path: Path) -> None:
    """24 hosts in three racks: two are bad, one rack shifts, one host is pushed twice, and more."""
    rng = np.random.default_rng(7)
    maker = LakeMaker(path)
    recordings = []
    for number in range(24):
        host = f"web-{number:02}"
        rack = f"r{number % 3}"
        read = drawn(rng, "block", "read", 400_000, 40)
        sched = drawn(rng, "sched", "", 20_000, 30)
        if host == BAD_TAIL:
            read.dur[rng.random(len(read.dur)) < 0.25] *= 30
        if host == BAD_MEDIAN:
            read.dur *= 5
        if rack == "r2":
            late = read.ts >= T0 + SHIFT_FROM * SECOND
            read.dur[late] = read.dur[late] * 2
        device = rng.integers(2, size=len(read.dur))
        devices = [
            Operations("block", "read", read.ts[device == n], read.dur[device == n], "device", name)
            for n, name in enumerate(("sda", "sdb"))
        ]
        finding = {
            "nr": 0,
            "ts": T0 + SECOND,
            "dur": 5_000_000,
            "source": "finding",
            "target": "operation",
            "operation": "read",
            "victim": HOSTILE if number == 1 else f"web/{number}",
            "mechanism": "device_slow" if number % 2 else "runqueue",
            "culprit_kind": "device" if number % 2 else None,
            "culprit": "sda" if number % 2 else None,
            "object": HOSTILE if number == 3 else None,
            "blamed_ns": 4_000_000 + number if number % 2 else None,
            "share": 0.5,
            "count": 2,
            "grade": "B" if number % 2 else None,
            "confidence": ("high", "medium", "low")[number % 3],
            "missing": "stacks" if number == 4 else None,
            "verdict": f"{HOSTILE} waited" if number == 1 else "waited",
            "id": f"op:{number}",
        }
        slow = int(np.argmax(read.dur))
        slowest = {
            "ts": int(read.ts[slow]),
            "dur": int(read.dur[slow]),
            "kind": "block",
            "op": "read",
            "process": HOSTILE if number == 2 else "web",
            "tid": 100 + number,
            "object": "sda",
            "id": f"block:{number}",
        }
        one = Pushed(
            host,
            [read, sched, *devices],
            dur=SECONDS * SECOND,
            labels={"rack": rack, "kernel": HOSTILE if number == 1 else "6.1.0"},
            findings=[finding] if number != 20 else [],
            slowest=[slowest],
            facts={"losses": 1, "lost_events": 7} if number == 6 else {},
        )
        recordings.append((host, maker.push(one)))
        if number == 7:
            # A second dump of the flight recorder: the same seconds and the same verdict.
            one.recording = ""
            maker.push(one)
    # A few operations of a kind that the other hosts did not record, with a hostile name.
    ts = T0 + np.arange(5) * SECOND
    few = Operations("dns", "", ts, np.array([64, 65, 1000, 5_000, 70_000_000]))
    named = Operations("dns", "", ts, few.dur, "name", HOSTILE)
    maker.push(Pushed("db-1", [few, named], dur=SECONDS * SECOND, cluster="it's [b]*"))
    maker.compact(recordings[10:14])

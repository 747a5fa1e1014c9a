#!/usr/bin/env python3
"""Makes fixtures/kafka: sudo python3 fixture.py WHYSLOW FOLDER

A few seconds of a broker with waiting producers (kafka_broker.py): the chunk of its profile with
the longest wait for the log's lock, and a recording of the profile and the kernel events around
it, without file and host names.
"""

import gzip
import json
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import kafka_broker  # noqa: E402
from lab import Lab  # noqa: E402

SECONDS = 20
# Chunk header: size, start and duration.
HEAD = struct.Struct(">8xq16xqq")


def chunks(profile: bytes) -> list[tuple[int, int, bytes]]:
    """Start, end and bytes of each chunk."""
    found, at = [], 0
    while at < len(profile):
        size, begin, length = HEAD.unpack_from(profile, at)
        found.append((begin, begin + length, profile[at : at + size]))
        at += size
    return found


def longest(whyslow: str, recording: Path, window: str) -> dict[str, Any]:
    """The longest wait for the log's lock among those with a single holder."""
    words = [whyslow, "locks", "log", str(recording), "-w", window, "-n", "0", "--json"]
    rows = json.loads(subprocess.check_output(words))["tables"][0]["rows"]
    waits = [
        row
        for row in rows
        if "UnifiedLog" in (row["function"] or "")
        and row["reported_by"]
        and row["confidence"] in {"medium", "high"}
    ]
    return max(waits, key=lambda row: row["dur_ns"] or 0)


def main() -> None:
    whyslow, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(exist_ok=True)
    scratch = Path(tempfile.mkdtemp())
    spool = scratch / "both.wsl.spool"

    recorded = []

    def record(pid: int) -> None:
        time.sleep(12)
        recorded.append(time.time_ns())
        words = [whyslow, "record", "-p", str(pid), "--for", "4s", "-o", scratch / "both.wsl"]
        words += ["--what", "sched,syscalls,block,locks", "--min", "5ms", "--no-import"]
        subprocess.run([str(word) for word in words], check=True)
        recorded.append(time.time_ns())

    with Lab(SECONDS + 150) as lab:
        kafka_broker.work(
            lab, SECONDS, scratch / "all.jfr",
            started=lambda pid: threading.Thread(target=record, args=(pid,)).start(),
        )  # fmt: skip
    profile = (scratch / "all.jfr").read_bytes()
    both = scratch / "whole.wsl"
    subprocess.run([whyslow, "import", spool, scratch / "all.jfr", "-o", both], check=True)
    # Exclude the start and end of the recorder.
    window = f"{recorded[0] + 7 * 10**8}ns..{recorded[1] - 2 * 10**8}ns"
    found = longest(whyslow, both, window)
    at = found["ts_ns"] + found["dur_ns"] // 2
    print(f"longest wait: {found['dur_ns'] / 1e6:.0f} ms")
    chunk = next(bytes_ for begin, end, bytes_ in chunks(profile) if begin <= at < end)
    (scratch / "chunk.jfr").write_bytes(chunk)
    (folder / "incident.jfr.gz").write_bytes(gzip.compress(chunk, 9, mtime=0))
    small = scratch / "small.wsl"
    subprocess.run([whyslow, "import", spool, scratch / "chunk.jfr", "-o", small], check=True)
    found = longest(whyslow, small, window)
    window = f"{found['ts_ns']}ns..{found['ts_ns'] + found['dur_ns']}ns"
    words = [whyslow, "export", "snapshot", small, "-w", window, "--around", "300ms", "--redact"]
    subprocess.run([*words, "-o", folder / "incident.wsl.tar.zst"], check=True)


main()

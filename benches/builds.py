#!/usr/bin/env python3
"""Compares two builds of the program: CPU seconds, medians of interleaved runs.

    ./dev bench builds BEFORE AFTER          imports, queries, explain, and as root the recorder
    ./dev bench builds BEFORE AFTER --only import

BEFORE and AFTER are programs; XTASK (of either build) creates the synthetic recording.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import cost
import run

ROUNDS = 9


def queries(work, traces, pair):
    """Each query of `./dev bench queries` on ten million calls, and on the bundled incident."""
    large, small = work / "synthetic.wsl", work / "small.wsl"
    subprocess.run([run.XTASK, "synthetic", large, str(run.SYNTHETIC_ROWS)], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([pair["after"], "import", traces["web-incident"], "-o", small, "--no-progress"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for name, (words, *_) in run.QUERIES.items():
        yield f"{name}, {run.SYNTHETIC_ROWS:,} calls", lambda build, words=words: [[build, *words, large, "--json"]]
    yield "stats, small recording", lambda build: [[build, "io", "stats", small]] * 5
    yield "explain, small recording", lambda build: [[build, "explain", small]] * 3


def imports(work, traces, pair):
    """The import of each trace, and of a trace repeated to a larger size."""
    out = work / "import.wsl"
    large = run.large_trace(work, traces["web-incident"], run.LARGE_EVENTS[0])
    for name, trace in [*traces.items(), (f"web-incident repeated, {run.LARGE_EVENTS[0]:,} events", large)]:
        yield f"import {name}", lambda build, trace=trace: [[build, "import", trace, "-o", out, "--force", "--no-progress"]]


def recorder(work, _, pair):
    """CPU time of a recorded call, of the recorder per record, and of the import of a spool."""
    program = work / "calls"
    subprocess.run(["cc", "-O2", "-o", program, run.ROOT / "benches/calls.c"], check=True)
    call, own = {name: [] for name in pair}, {name: [] for name in pair}
    for _ in range(ROUNDS):
        for name, build in pair.items():
            done = subprocess.run([build, "record", "--force", "-o", work / "calls.wsl", "-a", "--", program, str(cost.PAIRS)],
                                  capture_output=True, text=True)
            printed = re.search(r"^\d+\.\d$", done.stdout, re.MULTILINE)
            if done.returncode or not printed:
                sys.exit(f"cannot record with {build}: {done.stderr[-400:]}")
            call[name].append(float(printed.group()) / 1e9)
            records, seconds, _, _ = cost.own_cost(done.stderr)
            own[name].append(seconds / records)
    yield "ns per recorded call", call
    yield "ns of the recorder per record", own
    spool, out = work / "spool.wsl", work / "spooled.wsl"
    subprocess.run([pair["after"], "record", "--force", "--keep-spool", "-o", spool, "--what", "syscalls", "--", program, "1000000"],
                   check=True, capture_output=True)
    yield "spool import", lambda build: [[build, "import", f"{spool}.spool", "-o", out, "--force", "--no-progress"]]


PARTS = {"import": imports, "queries": queries, "recorder": recorder}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--only", choices=PARTS)
    options = parser.parse_args()
    pair = {"before": options.before.resolve(), "after": options.after.resolve()}
    rows = []
    with tempfile.TemporaryDirectory(prefix="whyslow-builds-") as folder:
        work = Path(folder)
        traces = run.find_traces(work)
        for part, measure in PARTS.items():
            if options.only not in (None, part):
                continue
            if part == "recorder" and os.geteuid() != 0:
                print("skipped: recorder: only root can record", file=sys.stderr)
                continue
            for name, measured in measure(work, traces, pair):
                if callable(measured):
                    result = run.interleaved({build: measured(path) for build, path in pair.items()}, runs=ROUNDS)
                    before, after = (result[build]["cpu"] for build in pair)
                else:
                    before, after = (statistics.median(measured[build]) for build in pair)
                print(f"{name}: {after / before:.3f}", file=sys.stderr, flush=True)
                unit = 1e9 if name.startswith("ns ") else 1e3
                rows.append([name, f"{before * unit:.1f}", f"{after * unit:.1f}", f"{after / before:.3f}"])
    run.table("Two builds (CPU ms unless stated)", ["measure", "before", "after", "after ÷ before"], rows)


if __name__ == "__main__":
    main()

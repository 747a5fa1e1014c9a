"""The load generator against others: requests per client CPU second, latencies, and schedule accuracy.

All load the same nginx on this machine, which responds from memory.
"""

import contextlib
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import cost
from load import tree_cpu

CONNECTIONS = 20
REQUESTS = 50_000
SECONDS = 5
RATE = 10_000
# Targets of the issue: as many requests per CPU second as oha; scheduled starts within a millisecond.
MARK_OF_OHA = 1.0
MARK_LATE_MS = 1.0
# Targets of the issue: deviation of phases from the server's log.
MARK_PHASE_MS = {"p50": 0.2, "p95": 1.0}
PHASED = 2_000
# Root of `cargo install --root` for peers that are not packaged.
PEERS = Path.home() / ".cache/peers/bin"


class Nginx:
    """A minimal server."""

    def __init__(self, work):
        folder = work / "answers"
        folder.mkdir()
        for each in (work, folder):
            each.chmod(0o755)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        (folder / "nginx.conf").write_text(
            f"daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/errors;\n"
            "events { worker_connections 1024; }\n"
            f"http {{ access_log off; keepalive_requests 1000000000; server {{ listen 127.0.0.1:{self.port};"
            ' location / { return 200 "ok"; } } }\n')
        self.server = subprocess.Popen(["nginx", "-p", folder, "-c", folder / "nginx.conf"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(100):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.05)
        self.close()
        raise cost.Unavailable("nginx does not respond")

    def close(self):
        self.server.terminate()
        self.server.wait()


def ours(whyslow, work, url, *more):
    """CPU seconds, requests, median in ms, and latency rows."""
    kept = work / "requests.ndjson"
    kept.unlink(missing_ok=True)
    cpu, out = tree_cpu([whyslow, "-q", "load", url, "--list", "none", "--json", "-o", kept, *more])
    kept.unlink(missing_ok=True)
    tables = {table["name"]: table for table in json.loads(out)["tables"]}
    rows = {row["of"]: row for row in tables["latency"]["rows"]}
    ok = sum(row["count"] for row in tables["outcomes"]["rows"] if row["outcome"] == "ok")
    if ok != rows["request"]["count"]:
        raise cost.Unavailable("requests failed")
    return cpu, ok, rows["request"]["p50_ns"] / 1e6, rows


def oha(program, url):
    cpu, out = tree_cpu([program, "--no-tui", "--output-format", "json", "-n", REQUESTS, "-c", CONNECTIONS, url])
    printed = json.loads(out)
    return cpu, sum(printed["statusCodeDistribution"].values()), printed["latencyPercentiles"]["p50"] * 1e3


def hey(program, url):
    cpu, out = tree_cpu([program, "-n", REQUESTS, "-c", CONNECTIONS, url])
    return cpu, int(re.search(r"\[200\]\s+(\d+)", out)[1]), float(re.search(r"50% in ([\d.]+) secs", out)[1]) * 1e3


def wrk(program, url):
    cpu, out = tree_cpu([program, "-t", 1, "-c", CONNECTIONS, "-d", f"{SECONDS}s", "--latency", url])
    number, unit = re.search(r"50%\s+([\d.]+)(us|ms|s)", out).groups()
    return cpu, int(re.search(r"(\d+) requests in", out)[1]), float(number) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit]


def phases(whyslow, work):
    """Deviation of phases from the server's log: rows of errors in ms, and whether the targets are met."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log, urls, kept = work / "arrivals.txt", work / "numbers.txt", work / "phases.ndjson"
    urls.write_text("".join(f"http://127.0.0.1:{port}/{number}\n" for number in range(PHASED)))
    server = subprocess.Popen([sys.executable, Path(__file__).parent / "arrivals.py", str(port), log])
    try:
        for _ in range(100):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.05)
        command = [whyslow, "-q", "load", "--urls", urls, "--threads", "4", "--total", str(PHASED), "--list", "none", "-o", kept]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    finally:
        server.terminate()
        server.wait()
    served = {int(number): list(map(int, times)) for number, *times in map(str.split, log.read_text().splitlines())}
    rows = [row for row in map(json.loads, kept.read_text().splitlines()) if "seq" in row]
    kept.unlink()
    if len(rows) != PHASED or len(served) != PHASED:
        raise cost.Unavailable(f"{len(rows)} of {PHASED} requests sent, {len(served)} received")
    errors = {"start to header read": [], "wait": [], "receive": [], "all": []}
    for row in rows:
        read, started, ended = served[int(row["endpoint"].rpartition("/")[2])]
        before = (row["connect_ns"] or 0) + row["send_ns"]
        errors["start to header read"].append(row["start_ns"] + before - read)
        errors["wait"].append(row["wait_ns"] - (started - read))
        errors["receive"].append(row["receive_ns"] - (ended - started))
        errors["all"].append(row["total_ns"] - before - (ended - read))
    table, is_met = [], True
    for name, values in errors.items():
        sizes = sorted(abs(value) / 1e6 for value in values)
        found = {"p50": sizes[len(sizes) // 2], "p95": sizes[len(sizes) * 95 // 100]}
        is_met &= all(found[key] <= mark for key, mark in MARK_PHASE_MS.items())
        table.append([name, f"{statistics.median(values) / 1e6:+.3f}", *(f"{found[key]:.3f}" for key in MARK_PHASE_MS), f"{sizes[-1]:.3f}"])
    return table, is_met


def measure(whyslow, work, runs, report_progress):
    """Tables, each a title, a header and rows; notes."""
    notes = []
    if shutil.which("nginx") is None:
        return [], ["skipped: `nginx` is not installed"]
    server = Nginx(work)
    url = f"http://127.0.0.1:{server.port}/"
    closed = ["--threads", CONNECTIONS, "--total", REQUESTS]
    contestants = {"whyslow load": lambda: ours(whyslow, work, url, *closed)[:3]}
    for name, run in (("oha", oha), ("hey", hey), ("wrk", wrk)):
        program = shutil.which(name, path=f"{os.environ['PATH']}:{PEERS}")
        if program is None:
            notes.append(f"`{name}` is not installed")
            continue
        contestants[name] = lambda run=run, program=program: run(program, url)
    try:
        found = {name: [] for name in contestants}
        for _ in range(runs):
            for name, run in contestants.items():
                cpu, requests, median = run()
                found[name].append((requests / cpu, median))
                report_progress(f"{name}: {requests / cpu:,.0f} requests per CPU second, median {median:.3f} ms")
        _, _, _, rows = ours(whyslow, work, url, "--rate", f"{RATE}/s", "--for", f"{SECONDS}s", "--threads", 50)
    finally:
        server.close()
    of_phases, is_met = phases(whyslow, work)
    notes.append(f"Phases of {PHASED:,} requests: half within {MARK_PHASE_MS['p50']} ms and 95 % within {MARK_PHASE_MS['p95']} ms of the server's log{'' if is_met else ': missed'}")
    medians = {name: [statistics.median(values) for values in zip(*got)] for name, got in found.items()}
    base = medians["whyslow load"][0]
    of_peers = [[name, f"{rate:,.0f}", f"{base / rate:.2f}×", f"{latency:.3f}"] for name, (rate, latency) in medians.items()]
    if "oha" in medians:
        ratio = base / medians["oha"][0]
        notes.append(f"{ratio:.2f}× oha's requests per CPU second (target {MARK_OF_OHA}×{'' if ratio >= MARK_OF_OHA else ': missed'})")
    late = rows["start delay"]
    of_schedule = [[name, *(f"{rows[name][key] / 1e6:.3f}" for key in ("p50_ns", "p99_ns", "max_ns"))]
                   for name in ("start delay", "request", "from intended start")]
    missed = "" if late["p99_ns"] / 1e6 <= MARK_LATE_MS else ": missed"
    notes.append(f"{late['count']:,} of {RATE * SECONDS:,} scheduled requests were sent; 99 % started within {late['p99_ns'] / 1e6:.3f} ms (target {MARK_LATE_MS} ms{missed})")
    return [
        (f"Load generators: {CONNECTIONS} connections, an nginx on the same machine", ["program", "requests per CPU second", "whyslow ÷ program", "median ms"], of_peers),
        ("Deviation of phases from the server's log (ms)", ["", "median", "absolute p50", "p95", "max"], of_phases),
        (f"A schedule of {RATE:,} requests per second (ms)", ["", "p50", "p99", "max"], of_schedule),
    ], notes

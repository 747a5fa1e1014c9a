"""Checks the explanations of slow requests of three web servers, and their detection in sockets.

The incidents (workloads/run.py dns_stall, image_board, word_service) run while whyslow records the machine; the
servers start before the recording. The results are compared with the applications' request logs.

    python3 benches/eval/requests.py WHYSLOW [--seeds 1] [--folder DIR] [--again] [--only NAME] [--load]

Checks that need a missing feature are reported as skipped.
"""

import json
import subprocess
import sys

import arguments
from explaining.recording import Recording
from requesting import joins
from requesting.checks import ROOT, Checks, Incident

MS = 1_000_000
# The resolver's timeout (5 s), with tolerance.
STALL_NS = 4_000 * MS
# Maximum delay from sending a DNS query to its arrival at the resolver, on a busy machine.
ARRIVED_NS = 100 * MS
# Number of slowest requests that are explained one by one.
WALKED = 5
# Arguments of workloads/run.py.
RUNS = {
    "dns-python": ["dns_stall"],
    "dns-java": ["dns_stall", "--language", "java"],
    "dns-go": ["dns_stall", "--language", "go"],
    "dns-kept": ["dns_stall", "--keepalive"],
    "dns-sweep": ["dns_stall", "--threads", "1,4,8,32", "--each", "20"],
    "dns-healthy": ["dns_stall", "--healthy"],
    "board": ["image_board"],
    "board-healthy": ["image_board", "--healthy"],
    "words": ["word_service"],
}


def parsed():
    parser = arguments.parser(__doc__, "requests", seconds=60)
    parser.set_defaults(seeds=1)
    parser.add_argument("--only", action="append", choices=RUNS, help="run only NAME (repeatable)")
    parser.add_argument("--load", action="store_true", help="generate the load with `whyslow load`")
    return parser.parse_args()


def record(options, folder, words, seed):
    """Writes truth.json, load.ndjson, served.ndjson and recording.wsl; false if the run failed."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, ROOT / "workloads/run.py", *words, "--seed", seed]
    command += ["--for", options.seconds, "--folder", folder, "--record", folder / "recording.wsl"]
    command += ["--whyslow", options.whyslow.resolve()]
    command += ["--load", options.whyslow.resolve()] if options.load else []
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    (folder / "run.log").write_text(done.stderr)
    if (folder / "truth.json").exists():
        return True
    print(f"{folder.name}: {done.stderr.strip()[-500:]}")
    return False


def check_dns(incident, checks):
    truth, guilty = incident.truth, incident.truth["guilty"]
    slow = incident.slow_served()
    health = [row for row in slow if row["endpoint"] == "/health"]
    checks.check("load: pages are slow, and no health check in the application", slow and not health, f"{len(slow)} of {truth['served']}")
    check_queries(incident, checks, slow)
    if incident.name.startswith("dns-go"):
        # Go has its own resolver: no C library function shows the lookup.
        return check_finding(incident, checks, slow)
    lookups = [row for row in incident.rows("dns", "log") if row["host"] == guilty["host"]]
    long = [row for row in lookups if (row["dur_ns"] or 0) >= STALL_NS]
    of_lookup = [row for row in slow if any(is_within(lookup, row) for lookup in long)]
    # In Java, one thread looks up a name for all that wait for it.
    few = incident.name.startswith("dns-java")
    enough = len(of_lookup) >= 1 if few else len(of_lookup) == len(slow)
    checks.check("lookups: the slow lookups belong to the threads of the slow requests", enough, f"{len(of_lookup)} of {len(slow)}")
    address = guilty["resolver"].rpartition(":")[0]
    servers = [row for row in incident.rows("dns", "stats", table=1) if address in json.dumps(row)]
    checks.check("lookups: the active resolver and its timeout", servers and "5000000000" in json.dumps(servers))
    check_finding(incident, checks, slow)


def check_queries(incident, checks, slow):
    """Each slow request overlaps an unanswered DNS query; the resolver's log lists the queries that it dropped."""
    guilty = incident.truth["guilty"]
    lost = [
        row
        for row in incident.rows("nameservers", "log")
        if row["server"] == guilty["resolver"] and row["outcome"] != "answered" and row["dur_ns"] >= STALL_NS
    ]
    seen = [
        request
        for request in slow
        if any(row["ts_ns"] <= request["end_ns"] and request["begin_ns"] <= row["ts_end_ns"] for row in lost)
    ]
    checks.check("nameservers: an unanswered query in each slow request", slow and len(seen) == len(slow), f"{len(seen)} of {len(slow)}, {len(lost)} queries")
    dropped = [row["ts_ns"] for row in incident.truth["lost"]]
    same = [at for at in dropped if any(0 <= at - row["ts_ns"] <= ARRIVED_NS for row in lost)]
    is_same = len(same) == len(dropped) == len(lost)
    checks.check("nameservers: the unanswered queries are those that the resolver dropped", is_same, f"{len(same)} of {len(dropped)}, {len(lost)} reported")


def check_finding(incident, checks, slow):
    guilty, findings = incident.truth["guilty"], incident.findings()
    checks.check("explain: reports the lookup", any(is_lookup(finding, guilty) for finding in findings), first(findings))
    cited = [finding for finding in findings if is_lookup(finding, guilty) and "timeout 5 s, attempts 2" in json.dumps(finding)]
    checks.check("explain: the resolver's timeout and attempts", bool(cited))
    is_top = findings and is_lookup(findings[0], guilty)
    checks.check("explain: reports it first", is_top)
    if not incident.name.startswith("dns-go"):
        walk(incident, checks, slow, lambda finding: is_lookup(finding, guilty))
        checks.check("explain: names the host", guilty["host"] in json.dumps(findings))
    # If all threads wait, requests without lookups wait for a thread, which slows the client down.
    health = incident.truth["pages"].get("/health", {})
    if health.get("slow"):
        checks.skip("explain: names the unaffected endpoint", f"{health['slow']} of {health['requests']} health checks were slow, too")
    else:
        text = json.dumps(incident.explained())
        checks.check("explain: names the unaffected endpoint", "/health" in text)


def is_within(call, request):
    return call["tid"] == request["tid"] and request["begin_ns"] <= call["ts_ns"] <= request["end_ns"]


def is_lookup(finding, guilty):
    """The lookup has most of the time, in this thread or in another one that it waits for."""
    return any(
        "dns_lookup" in (part["mechanism"], part["root"]) and guilty["resolver"] in json.dumps(part)
        for part in finding["parts"][:1]
    )


def first(findings):
    return findings[0]["verdict"][:240] if findings else "no finding"


def walk(incident, checks, slow, is_right):
    """Explains single slow requests by the thread and time that the application logged."""
    slow = sorted(slow, key=lambda row: row["begin_ns"] - row["end_ns"])[:WALKED]
    right, other = 0, ""
    for row in slow:
        tid = row.get("counter_tid") or row["tid"]
        findings = incident.findings("-w", f"{row['begin_ns']}ns..{row['end_ns']}ns", "-t", tid)
        found = any(map(is_right, findings))
        right += found
        other = other if found else first(findings)
    checks.check("explain: names the cause for a request's thread and time", slow and right == len(slow), f"{right} of {len(slow)} {other}")


def check_sweep(incident, checks):
    check_dns(incident, checks)
    patterns = json.dumps(incident.explained()["patterns"])
    checks.check("explain: reports the dependence on concurrency", "depends on concurrency" in patterns)


def check_healthy(incident, checks):
    slow = incident.slow_served()
    checks.check("healthy: no request takes seconds", not slow, str(len(slow)))
    blamed = [finding for finding in incident.findings() if is_lookup(finding, incident.truth["guilty"])]
    checks.check("healthy: blames no lookup", not blamed)


def is_sync(finding):
    guilty = finding["parts"][finding["culprit"]] if finding["culprit"] is not None else {}
    return (guilty.get("culprit") or {}).get("name") == "sync"


def check_board(incident, checks):
    truth, slow = incident.truth, incident.slow_served()
    health = [row for row in slow if row["endpoint"] == "/health.php"]
    checks.check("load: pages are slow, and no health check", slow and not health, f"{len(slow)} of {truth['served']}")
    calls = incident.rows("syscalls", "log", "--comm", "sync")
    pids = {row["pid"] for row in calls if row["name"] == "syncfs"}
    checks.check("calls: each sync was recorded", pids == {row["pid"] for row in truth["syncs"]}, str(len(pids)))
    findings = incident.findings()
    checks.check("explain: reports sync", any(map(is_sync, findings)))
    checks.check("explain: reports it first", findings and is_sync(findings[0]), first(findings))
    named = "sessions/sess_" in json.dumps([finding["target"] for finding in findings])
    checks.check("explain: names a session file as the target", named)
    walk(incident, checks, slow, is_sync)


def check_calm(incident, checks):
    slow = incident.slow_served()
    checks.check("healthy: no page is slow", not slow, str(len(slow)))
    checks.check("healthy: blames no sync", not any(map(is_sync, incident.findings())))


def check_words(incident, checks):
    truth, slow = incident.truth, incident.slow_served()
    checks.check("load: texts are slow", bool(slow), f"{len(slow)} of {truth['served']}")
    found = [f for f in incident.explained()["observations"] if f["kind"] == "temporary_files"]
    numbers = dict(found[0]["numbers"]) if found else {}
    guilty = truth["guilty"]
    checks.check("explain: counts all files", numbers.get("files") == guilty["files"], str(numbers.get("files")))
    checks.check("explain: counts all bytes", numbers.get("bytes_written") == guilty["bytes"])
    findings = incident.findings()
    in_folder = [s for s in findings if guilty["folder"] in json.dumps([s["target"], s["chain"]])]
    checks.check("explain: reports these files", bool(in_folder), first(findings))
    checks.check("explain: reports them first", findings and findings[0] in in_folder)
    disk = guilty["disk"]
    walk(incident, checks, slow, lambda finding: disk in json.dumps(finding["parts"][:1]))


CHECKS = {
    "dns-python": check_dns,
    "dns-java": check_dns,
    "dns-go": check_dns,
    "dns-kept": check_dns,
    "dns-sweep": check_sweep,
    "dns-healthy": check_healthy,
    "board": check_board,
    "board-healthy": check_calm,
    "words": check_words,
}


def main():
    options, checks = parsed(), Checks()
    for name in options.only or RUNS:
        for seed in range(1, options.seeds + 1):
            folder = options.folder / f"{name}-{seed}"
            if not (folder / "truth.json").exists() and (options.again or not record(options, folder, RUNS[name], seed)):
                continue
            incident = Incident(options.whyslow, folder)
            print(f"{folder.name}: {incident.summary()}", flush=True)
            CHECKS[name](incident, checks)
            joins.check(incident, Recording(folder / "recording.wsl", 0), checks)
    if checks.failed:
        sys.exit(f"{checks.failed} checks failed")


main()

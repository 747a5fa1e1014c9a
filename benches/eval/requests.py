"""Whether the slow requests of three web servers are explained, and found in their sockets.

The incidents (workloads/run.py dns_stall, image_board, word_service) run while whyslow records a machine whose
servers were there before. What they tell is compared with what the applications logged of each request.

    python3 benches/eval/requests.py WHYSLOW [--seeds 1] [--folder DIR] [--again] [--only NAME] [--load]

What a program cannot be asked yet is skipped, and said so.
"""

import json
import subprocess
import sys

import arguments
from explaining.recording import Recording
from requesting import joins
from requesting.checks import ROOT, Checks, Incident

MS = 1_000_000
# The resolver's time-out, with what a machine that is busy adds to it.
STALL_NS = 4_000 * MS
# From when a question was sent to when the resolver has it, on a machine that is busy.
ARRIVED_NS = 100 * MS
# Slow requests that are explained one by one: the slowest of them.
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
    parser.add_argument("--only", action="append", choices=RUNS, help="these runs only")
    parser.add_argument("--load", action="store_true", help="ask with `whyslow load`")
    return parser.parse_args()


def record(asked, folder, words, seed):
    """truth.json, load.ndjson, served.ndjson and recording.wsl; false if this machine cannot."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, ROOT / "workloads/run.py", *words, "--seed", seed]
    command += ["--for", asked.seconds, "--folder", folder, "--record", folder / "recording.wsl"]
    command += ["--whyslow", asked.whyslow.resolve()]
    command += ["--load", asked.whyslow.resolve()] if asked.load else []
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    (folder / "run.log").write_text(done.stderr)
    if (folder / "truth.json").exists():
        return True
    print(f"{folder.name}: {done.stderr.strip()[-500:]}")
    return False


def judge_dns(incident, checks):
    truth, guilty = incident.truth, incident.truth["guilty"]
    slow = incident.slow_served()
    well = [row for row in slow if row["endpoint"] == "/health"]
    checks.check("made: pages are slow, and in the application no health check", slow and not well, f"{len(slow)} of {truth['served']}")
    judge_questions(incident, checks, slow)
    if incident.name.startswith("dns-go"):
        # Programs in Go ask name servers themselves: no function of the C library tells of it.
        return judge_story(incident, checks, slow)
    lookups = [row for row in incident.rows("dns", "log") if row["host"] == guilty["host"]]
    long = [row for row in lookups if (row["dur_ns"] or 0) >= STALL_NS]
    of_lookup = [row for row in slow if any(is_within(lookup, row) for lookup in long)]
    # Java lets one look up a name for all that wait for it.
    few = incident.name.startswith("dns-java")
    enough = len(of_lookup) >= 1 if few else len(of_lookup) == len(slow)
    checks.check("lookups: the slow ones are those of the slow requests' threads", enough, f"{len(of_lookup)} of {len(slow)}")
    address = guilty["resolver"].rpartition(":")[0]
    asked = [row for row in incident.rows("dns", "stats", table=1) if address in json.dumps(row)]
    checks.check("lookups: the resolver in force, and its time-out", asked and "5000000000" in json.dumps(asked))
    judge_story(incident, checks, slow)


def judge_questions(incident, checks, slow):
    """Each slow request saw a question without an answer, as the resolver's own log of what it lost has them."""
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
    checks.check("nameservers: a question without an answer in each slow request", slow and len(seen) == len(slow), f"{len(seen)} of {len(slow)}, {len(lost)} questions")
    dropped = [row["ts_ns"] for row in incident.truth["lost"]]
    same = [at for at in dropped if any(0 <= at - row["ts_ns"] <= ARRIVED_NS for row in lost)]
    is_same = len(same) == len(dropped) == len(lost)
    checks.check("nameservers: lost is what the resolver says it lost", is_same, f"{len(same)} of {len(dropped)}, {len(lost)} told")


def judge_story(incident, checks, slow):
    guilty, told = incident.truth["guilty"], incident.stories()
    checks.check("explain: the lookup is told", any(is_lookup(story, guilty) for story in told), first(told))
    cited = [story for story in told if is_lookup(story, guilty) and "timeout 5 s, attempts 2" in json.dumps(story)]
    checks.check("explain: the resolver's timeout and attempts", bool(cited))
    at_first = told and is_lookup(told[0], guilty)
    checks.check("explain: at first", at_first)
    if not incident.name.startswith("dns-go"):
        walk(incident, checks, slow, lambda story: is_lookup(story, guilty))
        checks.check("explain: the host is named", guilty["host"] in json.dumps(told))
    # Where all threads wait, requests that need no lookup wait for a thread, and the client sees that.
    well = incident.truth["pages"].get("/health", {})
    if well.get("slow"):
        checks.skip("explain: who is exempt is named", f"{well['slow']} of {well['requests']} health checks were slow, too")
    else:
        text = json.dumps(incident.explained())
        checks.check("explain: who is exempt is named", "/health" in text)


def is_within(call, request):
    return call["tid"] == request["tid"] and request["begin_ns"] <= call["ts_ns"] <= request["end_ns"]


def is_lookup(story, guilty):
    """The lookup has most of the time, be it that of another thread, for which this one waits."""
    return any(
        "dns_lookup" in (part["mechanism"], part["root"]) and guilty["resolver"] in json.dumps(part)
        for part in story["parts"][:1]
    )


def first(told):
    return told[0]["verdict"][:240] if told else "no story"


def walk(incident, checks, slow, is_right):
    """What is told of single slow requests, of which the application knows thread and time."""
    slow = sorted(slow, key=lambda row: row["begin_ns"] - row["end_ns"])[:WALKED]
    right, other = 0, ""
    for row in slow:
        tid = row.get("counter_tid") or row["tid"]
        told = incident.stories("-w", f"{row['begin_ns']}ns..{row['end_ns']}ns", "-t", tid)
        found = any(map(is_right, told))
        right += found
        other = other if found else first(told)
    checks.check("explain: of a request's thread and time, the cause", slow and right == len(slow), f"{right} of {len(slow)} {other}")


def judge_sweep(incident, checks):
    judge_dns(incident, checks)
    told = json.dumps(incident.explained()["patterns"])
    checks.check("explain: that it depends on concurrency", "depends on concurrency" in told)


def judge_healthy(incident, checks):
    slow = incident.slow_served()
    checks.check("healthy: nothing takes seconds", not slow, str(len(slow)))
    told = [story for story in incident.stories() if is_lookup(story, incident.truth["guilty"])]
    checks.check("healthy: no lookup is blamed", not told)


def is_sync(story):
    guilty = story["parts"][story["culprit"]] if story["culprit"] is not None else {}
    return (guilty.get("culprit") or {}).get("name") == "sync"


def judge_board(incident, checks):
    truth, slow = incident.truth, incident.slow_served()
    well = [row for row in slow if row["endpoint"] == "/health.php"]
    checks.check("made: pages are slow, and no health check", slow and not well, f"{len(slow)} of {truth['served']}")
    calls = incident.rows("syscalls", "log", "--comm", "sync")
    pids = {row["pid"] for row in calls if row["name"] == "syncfs"}
    checks.check("calls: each sync is there", pids == {row["pid"] for row in truth["syncs"]}, str(len(pids)))
    told = incident.stories()
    checks.check("explain: sync is told", any(map(is_sync, told)))
    checks.check("explain: at first", told and is_sync(told[0]), first(told))
    named = "sessions/sess_" in json.dumps([story["target"] for story in told])
    checks.check("explain: a session's file is what waited", named)
    walk(incident, checks, slow, is_sync)


def judge_calm(incident, checks):
    slow = incident.slow_served()
    checks.check("healthy: no page is slow", not slow, str(len(slow)))
    checks.check("healthy: no sync is blamed", not any(map(is_sync, incident.stories())))


def judge_words(incident, checks):
    truth, slow = incident.truth, incident.slow_served()
    checks.check("made: texts are slow", bool(slow), f"{len(slow)} of {truth['served']}")
    found = [f for f in incident.explained()["findings"] if f["kind"] == "temporary_files"]
    numbers = dict(found[0]["numbers"]) if found else {}
    guilty = truth["guilty"]
    checks.check("explain: all files are told", numbers.get("files") == guilty["files"], str(numbers.get("files")))
    checks.check("explain: all bytes are told", numbers.get("bytes_written") == guilty["bytes"])
    told = incident.stories()
    in_folder = [s for s in told if guilty["folder"] in json.dumps([s["target"], s["chain"]])]
    checks.check("explain: a story is of these files", bool(in_folder), first(told))
    checks.check("explain: at first", told and told[0] in in_folder)
    disk = guilty["disk"]
    walk(incident, checks, slow, lambda story: disk in json.dumps(story["parts"][:1]))


JUDGES = {
    "dns-python": judge_dns,
    "dns-java": judge_dns,
    "dns-go": judge_dns,
    "dns-kept": judge_dns,
    "dns-sweep": judge_sweep,
    "dns-healthy": judge_healthy,
    "board": judge_board,
    "board-healthy": judge_calm,
    "words": judge_words,
}


def main():
    asked, checks = parsed(), Checks()
    for name in asked.only or RUNS:
        for seed in range(1, asked.seeds + 1):
            folder = asked.folder / f"{name}-{seed}"
            if not (folder / "truth.json").exists() and (asked.again or not record(asked, folder, RUNS[name], seed)):
                continue
            incident = Incident(asked.whyslow, folder)
            print(f"{folder.name}: {incident.about()}", flush=True)
            JUDGES[name](incident, checks)
            joins.judge(incident, Recording(folder / "recording.wsl", 0), checks)
    if checks.failed:
        sys.exit(f"{checks.failed} checks failed")


main()

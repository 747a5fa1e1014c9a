"""Checks the explanation of a Kafka broker in which producers wait for a lagging consumer.

The broker (workloads/kafka_broker.py) runs under async-profiler on a disk with slow phases, while whyslow records
it; once on a healthy disk, and once under JDK Flight Recorder. The profile alone must not claim more than it
contains. Together with the kernel events, the explanation must name the sendfile().

    python3 benches/eval/kafka.py WHYSLOW [--seconds 20] [--seeds 2] [--folder DIR] [--again]
"""

import argparse
import itertools
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workloads"))

import arguments

MS = 1_000_000
LOG = "UnifiedLog"
# Minimum duration of a relevant finding; a healthy broker has none of these that ends at the disk.
LONG_NS = 100 * MS


def parsed():
    parser = arguments.parser(__doc__, "kafka", seconds=20)
    parser.add_argument(
        "--make", nargs=4, metavar=("FOLDER", "VERSION", "SEED", "SECONDS"),
        help=argparse.SUPPRESS,
    )  # fmt: skip
    return parser.parse_args()


def make(words):
    """One run, inside a recording."""
    import kafka_broker
    from lab import Lab, UnavailableError

    folder, version, seed, seconds = pathlib.Path(words[0]), *words[1:]
    try:
        with Lab(float(seconds) + 150) as lab:
            truth = kafka_broker.work(
                lab, float(seconds), folder / "profile.jfr", version, int(seed)
            )
    except UnavailableError as error:
        sys.exit(f"skipped: {error}")
    (folder / "truth.json").write_text(json.dumps(truth))


def record(whyslow, folder, version, seed, seconds):
    """Writes profile.jfr, and both.wsl with the profile and the kernel events."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [whyslow, "record", "-o", folder / "both.wsl", "--force", "-a"]
    command += ["--with", folder / "profile.jfr", "--", sys.executable, __file__]
    command += [whyslow, "--make", folder, version, seed, seconds]
    log = folder / "record.log"
    with open(log, "w") as file:
        subprocess.run([str(word) for word in command], stdout=file, stderr=file, check=False)
    if not (folder / "truth.json").exists():
        sys.exit(f"{folder.name}: {log.read_text().strip()}")


def query(whyslow, *words):
    done = subprocess.run(
        [str(whyslow), *map(str, words), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def findings(whyslow, *words):
    return query(whyslow, "explain", *words)["findings"]


def calls(hop):
    return (hop["activity"] or {}).get("call", "")


def is_chain(finding, readers=("sendfile",)):
    """A request handler's write waits for the inode lock, which a read of old data holds.

    A network thread sends most of that data; at the start of a fetch, a request handler reads a header.
    """
    chain = finding["chain"]
    for hop, after in itertools.pairwise(chain):
        if (
            hop["mechanism"].startswith("lock_inode")
            and "request-handler" in hop["actor"]["name"]
            and calls(hop).startswith(("write", "pwrite"))
            and any("LogSegment.append" in frame for frame in hop.get("program", []))
            and calls(after).startswith(readers)
            and after["mechanism"].startswith("block_")
        ):
            return True
    return False


class Checks:
    def __init__(self):
        self.failed = 0

    def check(self, what, holds, more=""):
        self.failed += not holds
        print(f"  {'ok' if holds else 'FAILED'}: {what}{': ' if more else ''}{more}")


def waits(whyslow, recording):
    """Waits for the log's lock, longest first."""
    rows = query(whyslow, "locks", "log", recording, "-n", "0")["tables"][0]["rows"]
    found = [
        row for row in rows if LOG in (row["function"] or "") and row["dur_ns"] and row["reported_by"]
    ]
    return sorted(found, key=lambda row: -row["dur_ns"])


def check_both(whyslow, recording, checks):
    found = findings(whyslow, recording)
    chains = [finding for finding in found if is_chain(finding)]
    checks.check("both: reports the chain write < inode lock < sendfile < disk", bool(chains))
    long = [wait for wait in waits(whyslow, recording) if wait["dur_ns"] >= LONG_NS]
    through = 0
    for wait in long[:10]:
        of_wait = findings(whyslow, recording, "-w", wait["id"])
        through += any(is_chain(finding, ("sendfile", "pread64")) for finding in of_wait)
    share = f"{through} of {len(long[:10])}"
    checks.check("both: the longest waits for the log's lock lead to it", long and through * 2 >= len(long[:10]), share)


def check_profile(whyslow, profile, checks):
    found = findings(whyslow, profile)
    locks = [s for s in found if LOG in s["target"]["what"]]
    checks.check("profile: reports a wait for the log's lock", bool(locks))
    silent = [s for s in found if any(h["mechanism"] == "unseen_wait" for h in s["chain"])]
    checks.check("profile: reports the thread in a call that no signal interrupts", bool(silent))
    hops = [hop for finding in found for hop in finding["chain"]]
    kernel = [h for h in hops if h["mechanism"].startswith(("lock_inode", "block_", "lock_rwsem"))]
    checks.check("profile: reports no kernel lock and no disk", not kernel)
    sure = [h for h in hops if h["mechanism"] == "unseen_wait" and h["grade"] == "A"]
    checks.check("profile: claims about the kernel are not of grade A", not sure)
    missing = [m for finding in silent for m in finding["missing"]]
    checks.check("profile: names the missing events", bool(missing))


def check_healthy(whyslow, folder, checks):
    found = findings(whyslow, folder / "both.wsl")
    # Short waits for a fast disk are normal.
    long = [s for s in found if s["target"]["end_ns"] - s["target"]["begin_ns"] >= LONG_NS]
    checks.check("healthy: no such chain of at least 100 ms", not any(map(is_chain, long)))
    silent = [
        (hop["begin_ns"], hop["end_ns"], hop["actor"]["tid"])
        for finding in findings(whyslow, folder / "profile.jfr")
        for hop in finding["chain"]
        if hop["mechanism"] == "unseen_wait"
    ]
    wrong = [gap for gap in silent if not is_confirmed(whyslow, folder / "both.wsl", *gap)]
    checks.check("healthy: kernel events confirm the waits that the profile reports", not wrong, f"{len(silent)} reported")


def is_confirmed(whyslow, recording, begin, end, tid):
    """Whether the thread waited uninterruptibly for at least half of this time according to the scheduler."""
    window = f"{begin}ns..{end}ns"
    words = ["states", "log", recording, "--op", "uninterruptible", "-w", window, "-n", "0"]
    waited = [
        min(row["ts_ns"] + row["dur_ns"], end) - max(row["ts_ns"], begin)
        for table in query(whyslow, *words)["tables"]
        for row in table["rows"]
        if row["tid"] == tid and row["dur_ns"]
    ]
    return 2 * sum(waited) >= end - begin


def check_jdk(whyslow, folder, checks):
    found = waits(whyslow, folder / "profile.jfr")
    long = [wait for wait in found if wait["dur_ns"] >= LONG_NS]
    named = [wait for wait in long if wait.get("holder_comm")]
    more = f"{len(named)} of {len(long)}"
    checks.check("JDK: waits for the log's lock have holders", bool(long) and len(named) >= 0.9 * len(long), more)
    explained = findings(whyslow, folder / "both.wsl")
    checks.check("JDK: with kernel events the chain starts in write and ends in sendfile", any(
        calls(hop).startswith("sendfile") for finding in explained for hop in finding["chain"]
    ))  # fmt: skip


def main():
    arguments = parsed()
    if arguments.make:
        make(arguments.make)
        return
    runs = [(f"slow-{seed}", "4.4", seed) for seed in range(1, arguments.seeds + 1)]
    runs += [("healthy", "4.4", 0), ("jdk", "jdk", 1)]
    checks = Checks()
    for name, version, seed in runs:
        folder = arguments.folder / name
        if not (folder / "truth.json").exists():
            if arguments.again:
                continue
            record(arguments.whyslow, folder, version, seed, arguments.seconds)
        slow = json.loads((folder / "truth.json").read_text())["slow"]
        longest = max((row["dur_ns"] for row in slow), default=0) / MS
        print(f"{name}: {len(slow)} requests of at least 50 ms, longest {longest:.0f} ms")
        if name == "healthy":
            check_healthy(arguments.whyslow, folder, checks)
        elif name == "jdk":
            check_jdk(arguments.whyslow, folder, checks)
        else:
            check_profile(arguments.whyslow, folder / "profile.jfr", checks)
            check_both(arguments.whyslow, folder / "both.wsl", checks)
    if checks.failed:
        sys.exit(f"{checks.failed} checks failed")


main()

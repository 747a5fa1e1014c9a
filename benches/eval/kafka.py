"""Whether a Kafka broker whose producers wait for a lagging consumer is explained.

The broker (workloads/kafka_broker.py) runs under async-profiler on a disk that is slow now and then, while
whyslow records beside it; once on a disk that stays fast, and once under the JDK's own recorder. Asked are the
profile alone, which must not tell more than it can know, and both together, which must name the sendfile().

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
# A story that is worth telling; healthy brokers have none of these that ends in the disk.
LONG_NS = 100 * MS


def parsed():
    parser = arguments.parser(__doc__, "kafka", seconds=20)
    parser.add_argument(
        "--make", nargs=4, metavar=("FOLDER", "VERSION", "SEED", "SECONDS"),
        help=argparse.SUPPRESS,
    )  # fmt: skip
    return parser.parse_args()


def make(words):
    """One run, inside of a recording."""
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
    """profile.jfr, and both.wsl: the profile with the kernel's events."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [whyslow, "record", "-o", folder / "both.wsl", "--force", "-a"]
    command += ["--with", folder / "profile.jfr", "--", sys.executable, __file__]
    command += [whyslow, "--make", folder, version, seed, seconds]
    log = folder / "record.log"
    with open(log, "w") as file:
        subprocess.run([str(word) for word in command], stdout=file, stderr=file, check=False)
    if not (folder / "truth.json").exists():
        sys.exit(f"{folder.name}: {log.read_text().strip()}")


def answer(whyslow, *question):
    done = subprocess.run(
        [str(whyslow), *map(str, question), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def stories(whyslow, *question):
    return answer(whyslow, "explain", *question)["stories"]


def calls(hop):
    return (hop["activity"] or {}).get("call", "")


def is_chain(story, readers=("sendfile",)):
    """A request handler's write waits for the lock of the file, which a read of old data has.

    Most of that is sent by a network thread; where a fetch begins, a request handler reads a header first.
    """
    chain = story["chain"]
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
        print(f"  {'holds' if holds else 'FAILS'}: {what}{': ' if more else ''}{more}")


def waits(whyslow, recording):
    """Waits for the lock of the log, by length."""
    rows = answer(whyslow, "locks", "log", recording, "-n", "0")["tables"][0]["rows"]
    found = [
        row for row in rows if LOG in (row["function"] or "") and row["dur_ns"] and row["told_by"]
    ]
    return sorted(found, key=lambda row: -row["dur_ns"])


def judge_both(whyslow, recording, checks):
    told = stories(whyslow, recording)
    chains = [story for story in told if is_chain(story)]
    checks.check("both: write < lock of the file < sendfile < disk is told", bool(chains))
    long = [wait for wait in waits(whyslow, recording) if wait["dur_ns"] >= LONG_NS]
    through = 0
    for wait in long[:10]:
        of_wait = stories(whyslow, recording, "-w", wait["id"])
        through += any(is_chain(story, ("sendfile", "pread64")) for story in of_wait)
    share = f"{through} of {len(long[:10])}"
    checks.check("both: from the longest waits for the log's lock to it", long and through * 2 >= len(long[:10]), share)


def judge_profile(whyslow, profile, checks):
    told = stories(whyslow, profile)
    locks = [s for s in told if LOG in s["target"]["what"]]
    checks.check("profile: a wait for the log's lock is told", bool(locks))
    silent = [s for s in told if any(h["mechanism"] == "unseen_wait" for h in s["chain"])]
    checks.check("profile: who was in a call that no signal reached is told", bool(silent))
    hops = [hop for story in told for hop in story["chain"]]
    kernel = [h for h in hops if h["mechanism"].startswith(("lock_inode", "block_", "lock_rwsem"))]
    checks.check("profile: no lock of the kernel and no disk is told", not kernel)
    sure = [h for h in hops if h["mechanism"] == "unseen_wait" and h["grade"] == "A"]
    checks.check("profile: what the kernel did is not taken for sure", not sure)
    missing = [m for story in silent for m in story["missing"]]
    checks.check("profile: it is said what would tell", bool(missing))


def judge_healthy(whyslow, folder, checks):
    told = stories(whyslow, folder / "both.wsl")
    # A fast disk is waited for, too; that nobody notices.
    long = [s for s in told if s["target"]["end_ns"] - s["target"]["begin_ns"] >= LONG_NS]
    checks.check("healthy: no such chain of 100 ms", not any(map(is_chain, long)))
    silent = [
        (hop["begin_ns"], hop["end_ns"], hop["actor"]["tid"])
        for story in stories(whyslow, folder / "profile.jfr")
        for hop in story["chain"]
        if hop["mechanism"] == "unseen_wait"
    ]
    wrong = [gap for gap in silent if not is_confirmed(whyslow, folder / "both.wsl", *gap)]
    checks.check("healthy: what the profile tells of waits in the kernel it confirms", not wrong, f"{len(silent)} told")


def is_confirmed(whyslow, recording, begin, end, tid):
    """Whether a thread waited uninterruptibly for at least half of this time, as the scheduler tells."""
    window = f"{begin}ns..{end}ns"
    asked = ["states", "log", recording, "--op", "uninterruptible", "-w", window, "-n", "0"]
    waited = [
        min(row["ts_ns"] + row["dur_ns"], end) - max(row["ts_ns"], begin)
        for table in answer(whyslow, *asked)["tables"]
        for row in table["rows"]
        if row["tid"] == tid and row["dur_ns"]
    ]
    return 2 * sum(waited) >= end - begin


def judge_jdk(whyslow, folder, checks):
    found = waits(whyslow, folder / "profile.jfr")
    long = [wait for wait in found if wait["dur_ns"] >= LONG_NS]
    named = [wait for wait in long if wait.get("holder_comm")]
    more = f"{len(named)} of {len(long)}"
    checks.check("JDK: waits for the log's lock have holders", bool(long) and len(named) >= 0.9 * len(long), more)
    told = stories(whyslow, folder / "both.wsl")
    checks.check("JDK: with the kernel's events the chain starts in write and ends in sendfile", any(
        calls(hop).startswith("sendfile") for story in told for hop in story["chain"]
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
        print(f"{name}: {len(slow)} requests of 50 ms and more, the longest {longest:.0f} ms")
        if name == "healthy":
            judge_healthy(arguments.whyslow, folder, checks)
        elif name == "jdk":
            judge_jdk(arguments.whyslow, folder, checks)
        else:
            judge_profile(arguments.whyslow, folder / "profile.jfr", checks)
            judge_both(arguments.whyslow, folder / "both.wsl", checks)
    if checks.failed:
        sys.exit(f"{checks.failed} checks failed")


main()

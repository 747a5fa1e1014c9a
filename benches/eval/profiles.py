"""Precision and recall of sampling gaps in a wall-clock profile as a detector of kernel waits.

A JVM on a disk with slow phases (workloads/jvm_storage.py) is profiled by async-profiler while kernel events are
recorded. Uninterruptible waits in the kernel events are the truth; only the profile is evaluated.

    python3 benches/eval/profiles.py WHYSLOW [--seconds 30] [--seeds 2] [--folder DIR] [--again]
"""

import json
import pathlib
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workloads"))

import arguments
import jvm_storage
from lab import Lab, UnavailableError

MS = 1_000_000
# Minimum duration of waits that have to be found; the detector may report shorter ones.
WAIT_NS = 80 * MS
# Waits with a shorter distance count as one.
BETWEEN_NS = 10 * MS
# Minimum overlap, as a share of the shorter interval.
OVERLAP = 0.5
# About ten sampling intervals: waits at the start or end of the profile are not evaluated.
EDGE_NS = 100 * MS
RUNS = [
    # async-profiler version, more options, file system, whether the disk stays fast, whether a second
    # recorder samples all threads from outside
    ("3.0", "", "ext4", False, False),
    ("4.4", "", "ext4", False, False),
    ("4.4", "", "xfs", False, False),
    ("4.4", ",nobatch", "ext4", False, False),
    ("4.4", "", "ext4", True, False),
    ("4.4", "", "ext4", False, True),
]


def parsed():
    return arguments.parser(__doc__, "profiles", seconds=30).parse_args()


def make(whyslow, folder, run, seed, seconds):
    """Records one run: profile.jfr and kernel.wsl."""
    version, options, kind, healthy, is_sampled = run
    folder.mkdir(parents=True, exist_ok=True)
    recording = folder / "kernel.wsl"
    command = [
        whyslow,
        "record",
        "--what",
        "sched,syscalls",
        "-o",
        recording,
        "--force",
    ]
    recorder = subprocess.Popen(
        [str(word) for word in command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    recorders = [recorder]

    def sample(pid):
        """Samples without kernel events, to evaluate what samples alone prove."""
        words = ["--stacks", "wall:10ms", "--what", "block", "-p", pid, "--keep-spool", "--force"]
        command = [whyslow, "record", *words, "-o", folder / "samples.wsl"]
        output = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        recorders.append(subprocess.Popen([str(word) for word in command], **output))

    try:
        time.sleep(3)
        with Lab(seconds + 120) as lab:
            truth = jvm_storage.work(
                lab,
                seconds,
                folder / "profile.jfr",
                version,
                options,
                seed,
                kind,
                healthy,
                sample if is_sampled else lambda _pid: None,
            )
    finally:
        for recorder in recorders:
            recorder.send_signal(signal.SIGINT)
            recorder.wait(120)
    (folder / "truth.json").write_text(json.dumps(truth))


def rows(whyslow, *words):
    answer = subprocess.run(
        [str(whyslow), *map(str, words), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    # Without rows there is no table.
    tables = json.loads(answer.stdout)["tables"]
    return tables[0]["rows"] if tables else []


def merged(waits):
    """Merges waits of one thread that are close together."""
    out = []
    for begin, end in sorted(waits):
        if out and begin - out[-1][1] < BETWEEN_NS:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([begin, end])
    return out


def overlaps(one, other):
    shared = min(one[1], other[1]) - max(one[0], other[0])
    return shared >= OVERLAP * min(one[1] - one[0], other[1] - other[0])


def score(whyslow, folder):
    """Counts of waits, found waits, reported waits and correctly reported waits."""
    pid = json.loads((folder / "truth.json").read_text())["pid"]
    gaps = rows(whyslow, "threads", "gaps", folder / "profile.jfr", "-n", "0")
    states = rows(
        whyslow,
        "states",
        "log",
        folder / "kernel.wsl",
        "--op",
        "uninterruptible",
        "-p",
        pid,
        "-n",
        "0",
    )
    by_thread = {}
    for row in states:
        if row["dur_ns"]:
            wait = (row["ts_ns"], row["ts_ns"] + row["dur_ns"])
            by_thread.setdefault(row["tid"], []).append(wait)
    by_thread = {tid: merged(waits) for tid, waits in by_thread.items()}
    sure = confidences(whyslow, folder)
    begin, end = extent(whyslow, folder / "profile.jfr")
    begin, end = begin + EDGE_NS, end - EDGE_NS
    found = {}
    stops = 0
    for row in gaps:
        if row["class"] in ("kernel_wait", "page_fault"):
            found.setdefault(row["tid"], []).append(
                (row["ts_ns"], row["ts_ns"] + row["dur_ns"])
            )
        stops += row["class"] == "process_stopped"
    result = {
        "waits": 0,
        "found": 0,
        "reported": 0,
        "right": 0,
        "stops": stops,
        "missed": [],
        "wrong": [],
        "sure": {},
    }
    for tid, waits in by_thread.items():
        for wait in waits:
            if wait[1] - wait[0] < WAIT_NS or wait[0] < begin or wait[1] > end:
                continue
            result["waits"] += 1
            if any(overlaps(wait, gap) for gap in found.get(tid, [])):
                result["found"] += 1
            else:
                result["missed"].append((tid, wait[0], (wait[1] - wait[0]) / MS))
    for tid, tids in found.items():
        for gap in tids:
            result["reported"] += 1
            is_right = any(overlaps(wait, gap) for wait in by_thread.get(tid, []))
            key = (sure.get((tid, gap[0]), "not reported"), "right" if is_right else "wrong")
            result["sure"][key] = result["sure"].get(key, 0) + 1
            if is_right:
                result["right"] += 1
            else:
                result["wrong"].append((tid, gap[0], (gap[1] - gap[0]) / MS))
    return result


def confidences(whyslow, folder):
    """Confidence of each gap after merging the profile with samples from outside."""
    spool = folder / "samples.wsl.spool"
    if not spool.exists():
        return {}
    both = folder / "both.wsl"
    command = [whyslow, "import", "-q", spool, folder / "profile.jfr", "-o", both, "--force"]
    subprocess.run([str(word) for word in command], check=True)
    gaps = rows(whyslow, "threads", "gaps", both, "-n", "0")
    return {(row["tid"], row["ts_ns"]): row["confidence"] for row in gaps}


# JDK functions, and their system calls.
CALLS = {
    "write": ("FileDispatcherImpl.write0", "FileDispatcherImpl.pwrite0"),
    "sendfile": ("FileChannelImpl.transferTo0",),
    "fsync": ("FileDispatcherImpl.force0",),
}
KERNEL_NAMES = {
    "write": ("write", "pwrite64"),
    "sendfile": ("sendfile", "sendfile64"),
    "fsync": ("fsync", "fdatasync"),
}


def flame(whyslow, profile, weight):
    """Time in each call according to the stacks of the profile."""
    command = [str(whyslow), "export", "collapsed", str(profile), "--weight", weight]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    times = dict.fromkeys(CALLS, 0)
    for line in text.splitlines():
        stack, _, time_ns = line.rpartition(" ")
        for call, functions in CALLS.items():
            if any(function in stack for function in functions):
                times[call] += int(time_ns)
    return times


def in_kernel(whyslow, folder, pid, window):
    """Time in each call of the program's threads according to kernel events."""
    names = [name for of in KERNEL_NAMES.values() for name in of]
    words = [
        "syscalls",
        "log",
        folder / "kernel.wsl",
        "-p",
        pid,
        "--name",
        ",".join(names),
        "-n",
        "0",
    ]
    times = dict.fromkeys(CALLS, 0)
    for row in rows(whyslow, *words):
        # Excludes the JVM's own threads (pipes, its log).
        if row["dur_ns"] is None or not row["comm"].startswith(
            ("request-handler", "network-thread", "log-flusher")
        ):
            continue
        begin, end = (
            max(row["ts_ns"], window[0]),
            min(row["ts_ns"] + row["dur_ns"], window[1]),
        )
        for call, of in KERNEL_NAMES.items():
            if row["name"] in of:
                times[call] += max(end - begin, 0)
    return times


def extent(whyslow, profile):
    answer = subprocess.run(
        [str(whyslow), "threads", "list", str(profile), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    window = json.loads(answer.stdout)["window"]
    return window["begin_ns"], window["end_ns"]


def share(part, whole):
    return (
        f"{part}/{whole} = {100 * part / whole:.1f} %" if whole else f"{part}/{whole}"
    )


def print_shares(whyslow, folder, sums):
    pid = json.loads((folder / "truth.json").read_text())["pid"]
    profile = folder / "profile.jfr"
    kernel = in_kernel(whyslow, folder, pid, extent(whyslow, profile))
    corrected, counted = (
        flame(whyslow, profile, weight) for weight in ("time", "samples")
    )
    for call in CALLS:
        parts = [kernel[call], corrected[call], counted[call]]
        sums[call] = [
            total + part for total, part in zip(sums[call], parts, strict=True)
        ]
        print(f"    {call}: {seconds(*parts)}")


def seconds(kernel, corrected, counted):
    def of(time_ns):
        off = f" ({100 * (time_ns - kernel) / kernel:+.1f} %)" if kernel else ""
        return f"{time_ns / 1e9:.2f} s{off}"

    return f"kernel {kernel / 1e9:.2f} s, flame graph {of(corrected)}, uncorrected {of(counted)}"


def main():
    arguments = parsed()
    pooled = {"waits": 0, "found": 0, "reported": 0, "right": 0}
    sums = {call: [0, 0, 0] for call in CALLS}
    for run in RUNS:
        for seed in range(1, arguments.seeds + 1):
            version, options, kind, healthy, is_sampled = run
            name = f"{version}{options.replace(',', '-')}-{kind}{'-healthy' if healthy else ''}"
            name += f"{'-sampled' if is_sampled else ''}-{seed}"
            folder = arguments.folder / name
            if not (folder / "truth.json").exists():
                if arguments.again:
                    continue
                try:
                    make(arguments.whyslow, folder, run, seed, arguments.seconds)
                except UnavailableError as error:
                    sys.exit(f"skipped: {error}")
            result = score(arguments.whyslow, folder)
            for key in pooled:
                pooled[key] += result[key]
            print(
                f"{name:24} waits found {share(result['found'], result['waits']):20} "
                f"reported right {share(result['right'], result['reported']):20} stops {result['stops']}"
            )
            if is_sampled:
                counts = sorted(result["sure"].items())
                words = [f"{sure} {is_right} {count}" for (sure, is_right), count in counts]
                print(f"    with samples from outside: {', '.join(words)}")
            for what in ("missed", "wrong"):
                for tid, at, length in result[what][:8]:
                    print(f"    {what}: thread {tid} at {at} for {length:.0f} ms")
            if not healthy:
                print_shares(arguments.whyslow, folder, sums)
    for call, parts in sums.items():
        print(f"{call}: {seconds(*parts)}")
    print(
        f"recall {share(pooled['found'], pooled['waits'])}, precision {share(pooled['right'], pooled['reported'])}"
    )


main()

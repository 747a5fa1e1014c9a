"""Reading profiles: large JFR and perf.data files made from the fixtures, compared with other readers.

The files are first checked with the JDK's `jfr summary` and `perf report`, whose counts must match; nothing
is measured on a file that they cannot read.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import made

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "benches/peers"
BUILD = ["cargo", "build", "--release", "--locked", "-p", "whyslow-ingest", "--example", "profile"]

# Targets: CPU s for reading, CPU s for gaps and locks, MiB, ms per query.
MARK_READ, MARK_LOCKS, MARK_MIB, MARK_MS = 1.0, 1.0, 400, 100
# A hundred megabytes: copies of the fixture's events per chunk, and number of chunks.
JFR_COPIES, JFR_CHUNKS = 7, 152
# `jfr print` writes a hundred times as much as it reads: it gets this fraction of the chunks.
PRINT_SHARE = 16
PERF_MB = [100, 300, 1000]
CONVERTER = ("jfr-converter", "4.5")
CONVERTER_SHA256 = "d8a5452b26adb11a2a0abf0c53799a6fd60dbccb0647efa5a734e3c46ced3df4"
ANSWERS = {
    "threads dump --at": ["threads", "dump", "{rec}", "--at", "{middle}"],
    "export collapsed, of a minute": ["export", "collapsed", "{rec}", "-w", "{minute}", "-o", "{out}.collapsed"],
    "export svg, of a minute": ["export", "svg", "{rec}", "-w", "{minute}", "-o", "{out}.svg"],
    "export svg, of all": ["export", "svg", "{rec}", "-o", "{out}.svg"],
}


class Notes(list):
    """Notes on skipped measurements."""

    def lacks(self, what, why):
        self.append(f"skipped: {what}: {why}")


def cache():
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "whyslow-dev/peers"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def quietly(command, **more):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **more).stdout


def attempt(notes, what, make):
    """The result of `make`, or None and a note with the reason."""
    try:
        return make()
    except FileNotFoundError as error:
        notes.lacks(what, f"`{error.filename}` not found")
    except subprocess.CalledProcessError as error:
        notes.lacks(what, f"`{error.cmd[0]}` failed: {(error.stderr or '').strip()[-200:]}")
    except ValueError as error:
        notes.lacks(what, str(error))
    return None


def java_loop():
    quietly(["javac", "-d", cache(), PEERS / "Loop.java"])
    return ["java", "-cp", cache(), "Loop"]


def converter():
    name, version = CONVERTER
    jar = cache() / f"{name}-{version}.jar"
    if not jar.exists():
        part = jar.with_suffix(".part")
        quietly(["curl", "-fsSL", "-o", part,
                 f"https://repo1.maven.org/maven2/tools/profiler/{name}/{version}/{name}-{version}.jar"])
        part.rename(jar)
    if hashlib.sha256(jar.read_bytes()).hexdigest() != CONVERTER_SHA256:
        raise ValueError(f"checksum mismatch: `{jar}` is not the version measured before")
    return ["java", "-jar", jar, "-o", "collapsed"]


def jfrs_loop():
    target = cache() / "jfrs"
    quietly(["cargo", "build", "--release", "--locked", "--manifest-path", PEERS / "jfrs/Cargo.toml", "--target-dir", target])
    return [target / "release/jfrs-loop"]


def check_jfr(path, events):
    """Raises ValueError unless the JDK counts as many events as were written."""
    text = quietly(["jfr", "summary", path])
    counts = dict(re.findall(r"^ (\S+) +(\d+) +\d+$", text, re.MULTILINE))
    read = sum(int(count) for name, count in counts.items() if name not in ("jdk.Metadata", "jdk.CheckPoint"))
    if read != events:
        raise ValueError(f"`jfr summary` counts {read} events of {events}")
    return int(counts["jdk.ExecutionSample"])


def check_perf(path, samples):
    text = quietly(["perf", "report", "--stats", "-i", path])
    read = int(re.search(r"SAMPLE events: +(\d+)", text).group(1))
    if read != samples:
        raise ValueError(f"`perf report` counts {read} samples of {samples}")


def jfr_contestants(work, program, whyslow, notes):
    """Readers of the file: name, with what it reads, and command."""
    file, part, out = work / "large.jfr", work / "part.jfr", work / "large.wsl"
    loop = attempt(notes, "jdk.jfr.consumer", java_loop)
    convert = attempt(notes, "async-profiler's converter", converter)
    crate = attempt(notes, "the crate jfrs", jfrs_loop)
    all_of_them = {
        "whyslow: read, sorted": [program, "read", file],
        "whyslow: and gaps": [program, "gaps", file],
        "whyslow: and lock holders": [program, "locks", file],
        "whyslow import (all events, written)": [whyslow, "import", file, "-o", out, "--force", "--no-progress"],
        "jfr summary (reads no fields)": ["jfr", "summary", file],
        "jdk.jfr.consumer: time, thread, stack": loop and [*loop, file],
        "jfr-converter -o collapsed": convert and [*convert, file, work / "peer.collapsed"],
        "jfrs: time, thread, stack": crate and [*crate, file],
        f"jfr print, 1/{PRINT_SHARE} of the file": ["jfr", "print", "--events", "jdk.ExecutionSample", part],
    }
    return {name: [command] for name, command in all_of_them.items() if command and (shutil.which(command[0]) or Path(command[0]).exists())}


def jfr_rows(result):
    best = result["whyslow: read, sorted"]["cpu"]
    for name, got in result.items():
        ratio = "–" if name.startswith(("whyslow", "jfr print")) else f"{got['cpu'] / best:.1f}×"
        yield [name, f"{got['cpu']:.2f}" if got["ok"] else "fails", f"{got['wall']:.2f}", f"{got['rss']:.0f}", ratio]


def missed(result):
    """Missed targets, as text."""
    read, gaps, locks = (result[f"whyslow: {part}"] for part in ("read, sorted", "and gaps", "and lock holders"))
    words = [
        (read["cpu"] > MARK_READ, f"reading takes {read['cpu']:.2f} CPU s (target {MARK_READ})"),
        (locks["cpu"] - read["cpu"] > MARK_LOCKS, f"gaps and lock holders take {locks['cpu'] - read['cpu']:.2f} CPU s (target {MARK_LOCKS})"),
        (max(one["rss"] for one in (read, gaps, locks)) > MARK_MIB, f"reading uses more than {MARK_MIB} MiB"),
        (result["whyslow import (all events, written)"]["rss"] > MARK_MIB, f"importing uses more than {MARK_MIB} MiB"),
    ]
    return [text for is_missed, text in words if is_missed] or ["all targets met"]


def answers(work, whyslow):
    """Commands on the recording, by name."""
    manifest = json.loads((work / "large.wsl/manifest.json").read_text())
    middle = (manifest["begin_ns"] + manifest["end_ns"]) // 2
    words = {
        "rec": work / "large.wsl",
        "middle": f"{middle}ns",
        "minute": f"{middle}ns..{middle + 60_000_000_000}ns",
        "out": work / "answer",
    }
    return {name: [[whyslow, *(word.format(**words) for word in of)]] for name, of in ANSWERS.items()}


def perf_contestants(work, whyslow, megabytes):
    file, out = work / f"large-{megabytes}.data", work / "perf.wsl"
    return {
        "whyslow import": [[whyslow, "import", file, "-o", out, "--force", "--no-progress"]],
        "perf report --stats": [["perf", "report", "--stats", "-i", file]],
        "perf script": [["perf", "script", "-i", file]],
    }


PERF_HEADER = ["MB", "samples", "reader", "CPU s", "wall s", "MiB", "M samples per CPU second"]


def perf_rows(megabytes, samples, result):
    for name, got in result.items():
        rate = f"{samples / got['cpu'] / 1e6:.2f}"
        yield [megabytes, f"{samples:,}", name, f"{got['cpu']:.2f}" if got["ok"] else "fails", f"{got['wall']:.2f}", f"{got['rss']:.0f}", rate]


def make_jfr(work):
    fixture = ROOT / "fixtures/jfr/each.jfr"
    events = made.make_jfr(fixture, work / "large.jfr", JFR_COPIES, JFR_CHUNKS)
    made.make_jfr(fixture, work / "part.jfr", JFR_COPIES, JFR_CHUNKS // PRINT_SHARE)
    samples = check_jfr(work / "large.jfr", events)
    return events, samples, (work / "large.jfr").stat().st_size


def make_perf(work, megabytes):
    path = work / f"large-{megabytes}.data"
    samples = made.make_perf(ROOT / "fixtures/perf/clock.data", path, megabytes * 1_000_000)
    check_perf(path, samples)
    return samples

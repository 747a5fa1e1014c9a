"""A fleet that is actually pushed: a recording of this machine under a steady load, resampled for each host,
imported and pushed to a lake by the program, queried and compacted.

Operations of the seed are drawn second by second, slowed down on bad hosts and racks, and written in the text
format: disk requests as the driver sees them, reads and writes as calls. The content of the lake comes from the same
importer, rollups and `explain` as that of any recording.
"""

import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import numpy
from lakes import SECOND, T0

from fleets import ROOT, found, simulate

#: Resampled if this machine cannot be recorded: seconds of an incident, which vary too much for the result
#: to mean anything.
FALLBACK = ROOT / "fixtures" / "web-incident" / "trace.tar.zst"
#: Maximum operations per second of the seed: a fleet of a thousand machines would have millions.
EACH_SECOND = 100
SECONDS = 30
AT_ONCE = 2
#: Direct reads and writes of a file, a few ms apart.
LOAD = """
import mmap, os, random, sys, time
path, seconds = sys.argv[1], float(sys.argv[2])
size, page = 64 << 20, mmap.mmap(-1, 4096)
with open(path, "wb") as file:
    for _ in range(size >> 20):
        file.write(os.urandom(1 << 20))
fd = os.open(path, os.O_RDWR | os.O_DIRECT)
print("ready", flush=True)
end, dice = time.monotonic() + seconds, random.Random(1)
while time.monotonic() < end:
    place = dice.randrange(size >> 12) << 12
    if dice.random() < 0.6:
        os.preadv(fd, [page], place)
    else:
        os.pwritev(fd, [page], place)
    if dice.random() < 0.05:
        os.fsync(fd)
    time.sleep(dice.expovariate(400))
"""
CALLS = {
    "read": ("pread64", "/srv/data/0"),
    "write": ("pwrite64", "/srv/data/1"),
    "sync": ("fsync", "/srv/data/1"),
}


def run(arguments, folder):
    """The measurements, and whether exactly the bad hosts were named."""
    program = pathlib.Path(arguments.program).resolve()
    lake, seed = folder / "pushed", folder / "pushed-seed"
    for old in (lake, seed):
        shutil.rmtree(old, ignore_errors=True)
    ran(program, "fleet", "push", recorded(program, folder), seed)
    seeds = [
        thinned(one)
        for one in simulate.of_lake(seed)
        if one.kind == "block" or one.op in CALLS
    ]
    rng = numpy.random.default_rng(7)
    made = simulate.Fleet(arguments.hosts, SECONDS, arguments.sigma, seeds=seeds)
    faults = made.faults(rng)
    start = time.monotonic()
    hosts = [made._host(number, rng, faults) for number in range(arguments.hosts)]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        done = list(pool.map(lambda host: push(program, host, folder, lake), hosts))
    took = time.monotonic() - start
    row = found.detected(str(lake), faults, verdicts=False)
    print(
        f"{len(done)} hosts imported and pushed in {took:.0f} s, {sum(done) / len(done) / 1024:.1f} KiB each: "
        f"{found.row_text(row)}",
        flush=True,
    )
    before = sizes(lake)
    ran(program, "fleet", "compact", lake, "--grace", "0s")
    ran(program, "fleet", "compact", lake, "--grace", "0s")
    after = sizes(lake)
    again = found.detected(str(lake), faults, verdicts=False)
    is_same = all(
        again[name] == value for name, value in row.items() if name != "seconds"
    )
    print(
        f"compacted: {before[0]} files of {before[1] / 2**20:.1f} MiB became {after[0]} of {after[1] / 2**20:.1f} MiB; same results: {is_same}"
    )
    ok = is_same and not any(row[name] for name in row if name.startswith("healthy"))
    ok &= all(row[name] for name in ("tail", "median", "device", "rack"))
    return {"row": row, "seconds": took, "files": [before, after]}, ok


def recorded(program, folder):
    """Records half a minute of a steady load on this machine."""
    name = folder / "seed.wsl"
    shutil.rmtree(name, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
        words = [sys.executable, "-c", LOAD, f"{scratch}/file", str(SECONDS + 5)]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as load:
            load.stdout.readline()
            words = [
                "record",
                "-o",
                name,
                "--for",
                f"{SECONDS}s",
                "-p",
                load.pid,
                "--what",
                "syscalls,block",
            ]
            try:
                ran(program, *words)
            except SystemExit as error:
                print(f"{error}; using {FALLBACK.name} instead", flush=True)
                return FALLBACK
            finally:
                load.kill()
    return name


def thinned(seed):
    """The seed with fewer operations per second."""
    rng = numpy.random.default_rng(len(seed.dur))
    parts = []
    for begin, end in zip(seed.offsets[:-1], seed.offsets[1:], strict=True):
        count = min(end - begin, EACH_SECOND)
        parts.append(rng.choice(seed.dur[begin:end], count, replace=False))
    offsets = numpy.concatenate([[0], numpy.cumsum([len(part) for part in parts])])
    return simulate.Seed(seed.kind, seed.op, numpy.concatenate(parts), offsets)


def push(program, host, folder, lake):
    """Imports and pushes a host; the number of pushed bytes."""
    name = folder / f"{host.host}.txt"
    recording = name.with_suffix(".wsl")
    name.write_text(text(host))
    try:
        ran(program, "-q", "import", name, "-o", recording)
        labels = [
            word
            for label, value in host.labels.items()
            for word in ("--label", f"{label}={value}")
        ]
        output = ran(program, "fleet", "push", recording, lake, *labels)
        return float(output.split(": ")[1].split(" KiB")[0]) * 1024
    finally:
        name.unlink()
        shutil.rmtree(recording, ignore_errors=True)


def text(host):
    """Operations as events, ordered by time."""
    events = [
        (T0, f"{stamp(T0)} [-] state_block_device dev=8:{16 * n} name={name}")
        for n, name in enumerate(simulate.DEVICES)
    ]
    sector = 0
    for one in host.operations:
        if one.kind == "block" and one.dimension == "device":
            number = simulate.DEVICES.index(one.key)
            letter = {"read": "R", "write": "W"}.get(one.op, "N")
            for ts, dur in zip(one.ts.tolist(), one.dur.tolist(), strict=True):
                sector += 8
                what = f"dev=8:{16 * number} sector={sector} sectors=8 rwbs={letter}"
                events.append(
                    (
                        ts,
                        f"{stamp(ts)} [0] (tid=50 pid=50 comm=db) block_rq_issue {what} bytes=4096",
                    )
                )
                events.append(
                    (
                        ts + dur,
                        f"{stamp(ts + dur)} [0] block_rq_complete {what} error=0",
                    )
                )
        elif one.kind == "io" and one.dimension == "all":
            events += calls(one)
    events.sort(key=lambda event: event[0])
    head = [
        "whyslow-text 1",
        f"meta hostname={host.host}",
        f"meta kernel_release={host.labels['kernel']}",
    ]
    return "\n".join(head + [line for _, line in events]) + "\n"


def calls(one):
    """A thread makes one call at a time: the first free thread makes the next one."""
    name, path = CALLS[one.op]
    first = 1000 * (1 + sorted(CALLS).index(one.op))
    free = {}
    order = numpy.argsort(one.ts, kind="stable")
    for ts, dur in zip(one.ts[order].tolist(), one.dur[order].tolist(), strict=True):
        tid = next((tid for tid, end in free.items() if end < ts), None)
        if tid is None:
            tid = first + len(free)
        free[tid] = ts + dur
        source = f"[1] (tid={tid} pid={first} comm=web)"
        yield (
            ts,
            f'{stamp(ts)} {source} syscall_enter name={name} fd=5 path="{path}" count=4096',
        )
        yield ts + dur, f"{stamp(ts + dur)} {source} syscall_exit name={name} ret=4096"


def stamp(ts):
    return f"{ts // SECOND}.{ts % SECOND:09}"


def sizes(lake):
    files = [path.stat().st_size for path in lake.rglob("*.parquet")]
    return len(files), sum(files)


def ran(program, *words):
    """Runs the program; its messages."""
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [program, *map(str, words)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"error: {' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stderr

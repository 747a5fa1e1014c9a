"""Overhead of recording for the recorded program: CPU time per system call, by recorder."""

import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAIRS = 300_000
# strace is too slow for more.
PAIRS_OF_STRACE = 15_000
BPFTRACE = ("tracepoint:raw_syscalls:sys_enter { @entered[tid] = nsecs; } "
            "tracepoint:raw_syscalls:sys_exit /@entered[tid]/ { @ns = hist(nsecs - @entered[tid]); delete(@entered[tid]); }")
EVENTS = "raw_syscalls:sys_enter,raw_syscalls:sys_exit"
FLOOR = "empty programs at entry and exit, the floor"
ALL_CALLS = "whyslow record --what syscalls -a (all processes)"
# Target of the issue: cost of our recorder as a multiple of the floor.
MARK_OF_FLOOR = 1.6
# Imports for the import rate, and its target in events per CPU second.
IMPORTS = 3
TRACEFS = Path("/sys/kernel/tracing")
MARK_IMPORT = 1_000_000


class Unavailable(Exception):
    """A contestant is not available on this machine."""


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"`{command[0]}` fails: {' '.join(done.stderr.split())[-200:]}")


@contextlib.contextmanager
def floor(work):
    """The command prefix that runs a command with the empty programs attached."""
    if shutil.which("bpftool") is None:
        raise Unavailable("`bpftool` is not installed")
    # A separate mount, because there may be none; unmounting it removes the pins.
    pins = work / "bpf"
    pins.mkdir(exist_ok=True)
    run("mount", "-t", "bpf", "whyslow-bench", pins)
    try:
        run("clang", "-O2", "-g", "-target", "bpf", "-c", HERE / "floor.bpf.c", "-o", work / "floor.o")
        run("cc", "-O2", "-o", work / "attached", HERE / "attached.c")
        run("bpftool", "prog", "loadall", work / "floor.o", pins / "floor")
        yield [work / "attached", *sorted((pins / "floor").iterdir()), "--"]
    finally:
        subprocess.run(["umount", pins], check=True)


def need_tracefs():
    """Mounts tracefs once for all: perf mounts it, bpftrace does not."""
    if not (TRACEFS / "events").exists():
        run("mount", "-t", "tracefs", "tracefs", TRACEFS)


@contextlib.contextmanager
def tracefs(_work):
    """System call events into a tracefs instance, read and discarded."""
    instance = TRACEFS / "instances" / f"whyslow-bench-{os.getpid()}"
    try:
        instance.mkdir()
        (instance / "buffer_size_kb").write_text("16384")
        (instance / "events/raw_syscalls/enable").write_text("1")
    except OSError as error:
        with contextlib.suppress(OSError):
            instance.rmdir()
        raise Unavailable(f"tracefs: {error.strerror}") from error
    readers = [
        subprocess.Popen(["cat", pipe], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for pipe in sorted(instance.glob("per_cpu/cpu*/trace_pipe_raw"))
    ]
    try:
        yield []
    finally:
        (instance / "events/raw_syscalls/enable").write_text("0")
        for reader in readers:
            reader.kill()
            reader.wait()
        instance.rmdir()


@contextlib.contextmanager
def nothing(_work):
    yield []


def contestants(whyslow, program, work):
    """Name, command, and context manager around it."""
    calls, few = [program, PAIRS], [program, PAIRS_OF_STRACE]

    def ours(name, *options):
        return [whyslow, "record", "--force", "-o", work / f"{name}.wsl", *options, "--", *calls]

    return [
        ("none", calls, nothing),
        (FLOOR, calls, floor),
        ("whyslow record --what syscalls", ours("calls", "--what", "syscalls"), nothing),
        (ALL_CALLS, ours("calls-all", "--what", "syscalls", "-a"), nothing),
        ("whyslow record (the default profile)", ours("default", "-a"), nothing),
        ("raw tracefs instance, read by cat", calls, tracefs),
        ("bpftrace, a hash and a histogram", ["bpftrace", "-q", "-c", " ".join(map(str, calls)), "-e", BPFTRACE], nothing),
        ("perf record -e raw_syscalls:*", ["perf", "record", "-q", "-o", work / "perf.data", "-e", EVENTS, *calls], nothing),
        ("perf trace record", ["perf", "trace", "record", "-q", "-o", work / "trace.data", *calls], nothing),
        ("perf trace -s", ["perf", "trace", "-s", "-o", work / "perf.txt", *calls], nothing),
        ("strace -f -o FILE", ["strace", "-f", "-o", work / "strace.txt", *few], nothing),
        ("strace -f -c", ["strace", "-f", "-c", "-o", work / "counts.txt", *few], nothing),
    ]


def measure(whyslow, work, runs, report_progress):
    """Rows of the table: recorder, CPU ns per call, overhead, ratio; rows of our recorder's own
    cost; notes."""
    if os.geteuid() != 0:
        return [], [], ["skipped: recording needs root"]
    need_tracefs()
    program = work / "calls"
    subprocess.run(["cc", "-O2", "-o", program, HERE / "calls.c"], check=True)
    found, notes, own = {}, [], {}
    for name, command, around in contestants(whyslow, program, work):
        if command[0] in (program, whyslow) or shutil.which(str(command[0])):
            found[name] = (command, around, [])
        else:
            notes.append(f"`{command[0]}` is not installed")
    for _ in range(runs):
        for name in list(found):
            command, around, times = found[name]
            try:
                with around(work) as words:
                    done = subprocess.run([str(word) for word in [*words, *command]], capture_output=True, text=True)
                printed = re.search(r"^\d+\.\d$", done.stdout, re.MULTILINE)
                if done.returncode or not printed:
                    raise Unavailable(" ".join(done.stderr.strip().splitlines()[-1:]))
            except Unavailable as error:
                notes.append(f"{name} fails: {error}")
                del found[name]
                continue
            times.append(float(printed.group()))
            if command[0] == whyslow:
                own.setdefault(name, []).append(own_cost(done.stderr))
            report_progress(f"{name}: {times[-1]}")
    medians = {name: statistics.median(times) for name, (_, _, times) in found.items()}
    none = medians["none"]
    rows = [
        [name, f"{medians[name]:.0f}", f"{min(times):.0f}", f"{medians[name] - none:+.0f}", f"{medians[name] / none:.1f}×"]
        for name, (_, _, times) in found.items()
    ]
    if FLOOR in medians and ALL_CALLS in medians:
        ratio = medians[ALL_CALLS] / medians[FLOOR]
        missed = "" if ratio <= MARK_OF_FLOOR else ": missed"
        notes.append(f"Recording all calls costs {ratio:.2f}× the floor (target {MARK_OF_FLOOR}×{missed})")
    return rows, [own_row(name, costs) for name, costs in own.items()], sorted(set(notes))


def own_cost(output):
    """The cost that our recorder reports: records, CPU seconds, bytes of the spool, lost records."""
    number = r"([\d.,]+)"
    report = re.search(rf"recorded {number} s, {number} events, (none|[\d,]+) lost \({number} % of a CPU, ", output)
    if report is None:
        return own_cost_of_older(output)
    numbers = (float(text.replace("none", "0").replace(",", "")) for text in report.groups())
    seconds, records, lost, percent = numbers
    return records, seconds * percent / 100, spool_bytes(output), int(lost)


def spool_bytes(output):
    """Size of the spool that a recording was imported from; 0 if it was not imported."""
    recording = re.search(r"^Next: whyslow explain (\S+)$", output, re.MULTILINE)
    manifest = recording and Path(recording.group(1), "manifest.json")
    if not manifest or not manifest.exists():
        return 0
    return sum(source["bytes"] for source in json.loads(manifest.read_text())["sources"])


def own_cost_of_older(output):
    """The same of a build before the summary was shortened, for comparisons."""
    number = r"([\d.,]+)"
    report = re.search(rf"{number} records in {number} s; the recorder (?:used|took) {number} % of a CPU and wrote {number} MiB", output)
    if report is None:
        raise Unavailable("the recorder did not report its cost")
    records, seconds, percent, mib = (float(text.replace(",", "")) for text in report.groups())
    lost = re.search(r"([\d,]+) records were lost", output)
    return records, seconds * percent / 100, mib * 2**20, int(lost.group(1).replace(",", "")) if lost else 0


def own_row(name, costs):
    """Recorder, records, CPU ns and bytes per record (medians), lost records (sum)."""
    records, cpu, size, lost = zip(*costs)
    cpu_each = statistics.median(seconds / count for seconds, count in zip(cpu, records)) * 1e9
    bytes_each = statistics.median(each / count for each, count in zip(size, records))
    return [name, f"{statistics.median(records):,.0f}", f"{cpu_each:.0f}", f"{bytes_each:.1f}", f"{sum(lost):,}"]


SPOOLS = {
    "system calls": ["--what", "syscalls", "--", "{calls}", "1000000"],
    "the default profile during perf bench sched messaging": ["-a", "--", "perf", "bench", "sched", "messaging", "-g", "10", "-l", "100"],
}


def imports(whyslow, work, report_progress):
    """Rows of the import table: recording, events, CPU seconds, events per CPU second."""
    rows = []
    for name, words in SPOOLS.items():
        if "perf" in words and shutil.which("perf") is None:
            continue
        out = work / "spooled.wsl"
        command = [str(work / "calls") if word == "{calls}" else word for word in words]
        run(whyslow, "record", "--force", "--keep-spool", "-o", out, *command)
        spool = Path(f"{out}.spool")
        took = []
        for _ in range(IMPORTS):
            child = subprocess.Popen([whyslow, "import", spool, "-o", out, "--force"], stdout=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE, text=True)
            output = child.stderr.read()
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            printed = re.search(r"([\d,]+) events", output)
            if child.returncode or printed is None:
                raise Unavailable(f"the import fails: {output[-200:]}")
            took.append(usage.ru_utime + usage.ru_stime)
        shutil.rmtree(spool)
        events, seconds = int(printed.group(1).replace(",", "")), statistics.median(took)
        rate = events / seconds
        report_progress(f"{name}: {rate:.0f} events per CPU second")
        rows.append([name, f"{events:,}", f"{seconds:.2f}", f"{rate / 1e6:.2f}", "" if rate >= MARK_IMPORT else "missed"])
    return rows

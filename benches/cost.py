"""What recording costs those who are recorded: CPU time of a system call, by recorder."""

import contextlib
import os
import re
import shutil
import statistics
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAIRS = 300_000
# strace takes too long for more.
PAIRS_OF_STRACE = 15_000
BPFTRACE = ("tracepoint:raw_syscalls:sys_enter { @entered[tid] = nsecs; } "
            "tracepoint:raw_syscalls:sys_exit /@entered[tid]/ { @ns = hist(nsecs - @entered[tid]); delete(@entered[tid]); }")
EVENTS = "raw_syscalls:sys_enter,raw_syscalls:sys_exit"
FLOOR = "empty programs at entry and exit, the floor"
ALL_CALLS = "whyslow record --what syscalls -a (all processes)"
# Of the issue: what our recorder may cost, as a multiple of the floor.
MARK_OF_FLOOR = 1.6
# Recordings imported for the rate of imports, and events a CPU second that it should reach.
IMPORTS = 3
TRACEFS = Path("/sys/kernel/tracing")
MARK_IMPORT = 1_000_000


class Unavailable(Exception):
    """Something that is compared cannot be had on this machine."""


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"`{command[0]}` fails: {' '.join(done.stderr.split())[-200:]}")


@contextlib.contextmanager
def floor(work):
    """The words that make a command run with the empty programs attached."""
    if shutil.which("bpftool") is None:
        raise Unavailable("`bpftool` is not installed")
    # A mount of our own, because there may be none; what is pinned there goes with it.
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
    """perf mounts it, bpftrace does not: mounted once, so that all find it."""
    if not (TRACEFS / "events").exists():
        run("mount", "-t", "tracefs", "tracefs", TRACEFS)


@contextlib.contextmanager
def tracefs(_work):
    """Events of system calls into an instance of the kernel's tracer, read and dropped."""
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
    """Name, command, and what has to be around it."""
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


def measure(whyslow, work, runs, tell):
    """Rows of the table: recorder, CPU ns of a call, what it adds, times as much; rows of what
    our recorder takes for itself; notes."""
    if os.geteuid() != 0:
        return [], [], ["only root can record: nothing was measured"]
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
                told = re.search(r"^\d+\.\d$", done.stdout, re.MULTILINE)
                if done.returncode or not told:
                    raise Unavailable(" ".join(done.stderr.strip().splitlines()[-1:]))
            except Unavailable as error:
                notes.append(f"{name} fails: {error}")
                del found[name]
                continue
            times.append(float(told.group()))
            if command[0] == whyslow:
                own.setdefault(name, []).append(own_cost(done.stderr))
            tell(f"{name}: {times[-1]}")
    medians = {name: statistics.median(times) for name, (_, _, times) in found.items()}
    none = medians["none"]
    rows = [
        [name, f"{medians[name]:.0f}", f"{min(times):.0f}", f"{medians[name] - none:+.0f}", f"{medians[name] / none:.1f}×"]
        for name, (_, _, times) in found.items()
    ]
    if FLOOR in medians and ALL_CALLS in medians:
        ratio = medians[ALL_CALLS] / medians[FLOOR]
        missed = "" if ratio <= MARK_OF_FLOOR else ": missed"
        notes.append(f"All calls recorded cost {ratio:.2f}× the floor (mark {MARK_OF_FLOOR}×{missed})")
    return rows, [own_row(name, told) for name, told in own.items()], sorted(set(notes))


def own_cost(said):
    """What a recorder says of itself: records, CPU seconds, bytes of the spool, records lost."""
    number = r"([\d.,]+)"
    told = re.search(rf"{number} records in {number} s; the recorder used {number} % of a CPU and wrote {number} MiB", said)
    if told is None:
        raise Unavailable("the recorder does not tell what it took")
    records, seconds, percent, mib = (float(text.replace(",", "")) for text in told.groups())
    lost = re.search(r"([\d,]+) records were lost", said)
    return records, seconds * percent / 100, mib * 2**20, int(lost.group(1).replace(",", "")) if lost else 0


def own_row(name, told):
    """Recorder, records, CPU ns and bytes of each, records lost: medians, and all losses."""
    records, cpu, size, lost = zip(*told)
    of_each = statistics.median(seconds / count for seconds, count in zip(cpu, records)) * 1e9
    bytes_each = statistics.median(each / count for each, count in zip(size, records))
    return [name, f"{statistics.median(records):,.0f}", f"{of_each:.0f}", f"{bytes_each:.1f}", f"{sum(lost):,}"]


SPOOLS = {
    "system calls": ["--what", "syscalls", "--", "{calls}", "1000000"],
    "the default profile on messages between processes": ["-a", "--", "perf", "bench", "sched", "messaging", "-g", "10", "-l", "100"],
}


def imports(whyslow, work, tell):
    """Rows of the table of imports: what was recorded, events, CPU seconds, events a CPU second."""
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
            said = child.stderr.read()
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            told = re.search(r"(\d+) events", said)
            if child.returncode or told is None:
                raise Unavailable(f"the import fails: {said[-200:]}")
            took.append(usage.ru_utime + usage.ru_stime)
        shutil.rmtree(spool)
        events, seconds = int(told.group(1)), statistics.median(took)
        rate = events / seconds
        tell(f"{name}: {rate:.0f} events a CPU second")
        rows.append([name, f"{events:,}", f"{seconds:.2f}", f"{rate / 1e6:.2f}", "" if rate >= MARK_IMPORT else "missed"])
    return rows

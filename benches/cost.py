"""What recording costs those who are recorded: CPU time of a system call, by recorder."""

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


def contestants(whyslow, program, work):
    """Name, command, and how often the program calls."""
    calls, few = [program, str(PAIRS)], [program, str(PAIRS_OF_STRACE)]

    def ours(name, *options):
        return [whyslow, "-q", "record", "--force", "-o", work / f"{name}.wsl", *options, "--", *calls]

    return [
        ("none", calls),
        ("whyslow record --what syscalls", ours("calls", "--what", "syscalls")),
        ("whyslow record --what syscalls -a (all processes)", ours("calls-all", "--what", "syscalls", "-a")),
        ("whyslow record (calls, scheduling, block I/O)", ours("default", "-a")),
        ("bpftrace, a hash and a histogram", ["bpftrace", "-q", "-c", " ".join(map(str, calls)), "-e", BPFTRACE]),
        ("perf record -e raw_syscalls:*", ["perf", "record", "-q", "-o", work / "perf.data", "-e", EVENTS, *calls]),
        ("perf trace record", ["perf", "trace", "record", "-q", "-o", work / "trace.data", *calls]),
        ("perf trace -s", ["perf", "trace", "-s", "-o", work / "perf.txt", *calls]),
        ("strace -f -o FILE", ["strace", "-f", "-o", work / "strace.txt", *few]),
        ("strace -f -c", ["strace", "-f", "-c", "-o", work / "counts.txt", *few]),
    ]


def measure(whyslow, work, runs, tell):
    """Rows of the table: recorder, CPU ns of a call, what it adds, times as much."""
    if os.geteuid() != 0:
        return [], ["only root can record: nothing was measured"]
    program = work / "calls"
    subprocess.run(["cc", "-O2", "-o", program, HERE / "calls.c"], check=True)
    found, notes = {}, []
    for name, command in contestants(whyslow, program, work):
        if command[0] in (program, whyslow) or shutil.which(str(command[0])):
            found[name] = (command, [])
        else:
            notes.append(f"`{command[0]}` is not installed")
    for _ in range(runs):
        for name in list(found):
            command, times = found[name]
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
            told = re.search(r"^\d+\.\d$", done.stdout, re.MULTILINE)
            if done.returncode or not told:
                notes.append(f"{name} fails: {done.stderr.strip().splitlines()[-1:]}")
                del found[name]
                continue
            times.append(float(told.group()))
            tell(f"{name}: {times[-1]}")
    none = statistics.median(found["none"][1])
    rows = []
    for name, (_, times) in found.items():
        middle = statistics.median(times)
        rows.append([name, f"{middle:.0f}", f"{min(times):.0f}", f"{middle - none:+.0f}", f"{middle / none:.1f}×"])
    return rows, sorted(set(notes))

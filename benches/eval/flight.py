"""The flight recorder in use, twice.

Ten minutes of a server's load with a fault once, at a moment nobody knows: it is saved whole, with the
minute before it, nothing is lost, and memory stays within what was told.

Half a minute of a flood that no recorder keeps up with, and little memory: what is saved says what is
missing, and memory stays within what was told.

    python3 benches/eval/flight.py WHYSLOW [SECONDS]
"""

import ctypes
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

PR_SET_PDEATHSIG = 1
SERVER = pathlib.Path(__file__).with_name("server.py")
# A second; with what the recorder tells of each this is some ten thousand records.
REQUESTS = 300
RECORDS_MIN = 10_000
FLOOD = "while :; do dd if=/dev/zero of=/dev/null bs=1 count=10000000 2>/dev/null; done"

RING = 60
# What the program itself takes, its code included.
PROGRAM = 64
# MiB: for what is kept, and for events on their way.
MEMORY, BUFFER = 64, 16
MEMORY_FLOOD, BUFFER_FLOOD = 16, 1
# The fault is made so long after what it is to be seen with.
BEFORE, BEFORE_FLOOD = 20, 1
FAULT_MS = 700

# A pipe that nobody writes to holds up who opens it; by a call that hardly anybody makes, so that
# nothing else on the machine is taken for the fault.
CALL = "openat2"
FAULT = """
import ctypes, os, sys, time
OPENAT2, AT_FDCWD = 437, -100
open('/proc/self/comm', 'w').write('faulty-7919')
os.mkdir('before-7919')
time.sleep(float(sys.argv[1]))
how = (ctypes.c_uint64 * 3)(os.O_RDONLY)
call = ctypes.CDLL(None, use_errno=True).syscall
if call(OPENAT2, AT_FDCWD, b'pipe-7919', how, ctypes.sizeof(how)) < 0:
    raise OSError(ctypes.get_errno(), 'openat2')
os.mkdir('after-7919')
"""


def main():
    whyslow = str(pathlib.Path(sys.argv[1]).resolve())
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 600.0
    seed = int(os.environ.get("SEED", time.time_ns() % 1_000_000))
    moment = random.Random(seed).uniform(seconds * 0.2, seconds * 0.8)
    for name in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(name, lambda number, _: sys.exit(128 + number))
    failures = []
    print(f"{seconds:.0f} s of a server, a fault after {moment:.0f} s (SEED={seed})", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        failures += of_server(whyslow, pathlib.Path(folder), seconds, moment)
    print("half a minute of a flood", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        failures += of_flood(whyslow, pathlib.Path(folder))
    for failure in failures:
        print(f"FAILED: {failure}")
    sys.exit(1 if failures else 0)


def of_server(whyslow, folder, seconds, moment):
    load = [sys.executable, str(SERVER), ".", str(REQUESTS)]
    with Run(whyslow, folder, load, (MEMORY, BUFFER)) as run:
        time.sleep(moment)
        run.fault(BEFORE)
        time.sleep(max(seconds - moment - BEFORE, 15))
        run.end()
    yield from run.failures()
    if "lost" in run.said():
        yield "records were lost"
    records, length = re.search(r"([\d,]+) records in ([\d.]+) s", run.said()).groups()
    rate = int(records.replace(",", "")) / float(length)
    print(f"{rate:.0f} records per second")
    if rate < RECORDS_MIN:
        yield "that is no load"
    saved = sorted(folder.glob("box-*.wsl"))
    if len(saved) != 1:
        yield f"{len(saved)} recordings instead of one"
    for recording in saved:
        yield from of_fault(run, recording)
    kept = [float(length) for length in re.findall(r"saved .*: ([\d.]+) s", run.said())]
    if any(length < min(RING, moment) for length in kept):
        yield f"{kept} s were kept instead of {RING}"


def of_flood(whyslow, folder):
    with Run(whyslow, folder, ["/bin/sh", "-c", FLOOD], (MEMORY_FLOOD, BUFFER_FLOOD)) as run:
        time.sleep(15)
        run.fault(BEFORE_FLOOD)
        time.sleep(15)
        # Should the flood have swept away the fault's own records.
        run.recorder.send_signal(signal.SIGUSR1)
        time.sleep(2)
        run.end()
    yield from run.failures()
    if not re.search(r"note: [1-9][\d,]* records were lost", run.said()):
        yield "what was lost was not told"
    saved = sorted(folder.glob("box-*.wsl"))
    if not saved:
        yield "nothing was saved"
    for recording in saved:
        answer = run.ask(["info", str(recording)])
        if not answer["losses"]:
            yield f"{recording.name} does not tell what is missing"
    if "the memory for kept data was full" not in run.said():
        yield "that the minute did not fit was not told"


def of_fault(run, recording):
    question = ["syscalls", "log", str(recording), "-c", "faulty-7919", "--name", f"{CALL},mkdir"]
    calls = run.ask([*question, "-n", "0"])["tables"][0]["rows"]
    opens = [call for call in calls if "pipe-7919" in str(call["path"])]
    if not any((call["dur_ns"] or 0) >= 500_000_000 and call["ret"] is not None for call in opens):
        yield f"the fault is not in {recording.name}: {opens}"
    for name in ("before-7919", "after-7919"):
        if not any(name in str(call["path"]) for call in calls):
            yield f"what was done ({name}) is not in {recording.name}"


class Run:
    """A recorder beside a load; both are gone when it is left, however that happens."""

    def __init__(self, whyslow, folder, load, memory):
        self.whyslow, self.folder, self.load = whyslow, folder, load
        self.memory, self.buffer = memory
        self.processes = []
        self.most = {}

    def __enter__(self):
        os.mkfifo(self.folder / "pipe-7919")
        self.recorder = self.start(
            [self.whyslow, "record", "-o", "box.wsl", "--ring", f"{RING}s", "--after", "3s"]
            + ["--cooldown", "1h", "--ring-memory", f"{self.memory}MiB"]
            + ["--buffer", f"{self.buffer}MiB", "--when", f"{CALL}>500ms"],
            stderr=(self.folder / "said.txt").open("w"),
        )
        self.start(self.load)
        threading.Thread(target=self.watch, daemon=True).start()
        return self

    def __exit__(self, *_):
        for process in self.processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()

    def start(self, command, **options):
        """In a group of its own, which can be ended as one; nobody outlives this process."""
        die = ctypes.CDLL(None).prctl
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            start_new_session=True,
            preexec_fn=lambda: die(PR_SET_PDEATHSIG, signal.SIGKILL),
            **options,
        )
        self.processes.append(process)
        return process

    def fault(self, before):
        fault = self.start([sys.executable, "-c", FAULT, str(before)])
        time.sleep(before + FAULT_MS / 1000)
        threading.Thread(target=self.release, daemon=True).start()
        if fault.wait(timeout=60) != 0:
            raise RuntimeError("there was no fault")

    def release(self):
        with (self.folder / "pipe-7919").open("w"):
            pass

    def end(self):
        self.recorder.send_signal(signal.SIGTERM)
        self.recorder.wait(timeout=300)

    def said(self):
        return (self.folder / "said.txt").read_text()

    def watch(self):
        while self.recorder.poll() is None:
            try:
                taken = memory(self.recorder.pid)
                self.most = max(self.most, taken, key=lambda taken: taken.get("all", 0))
            except OSError:
                # A descriptor was closed meanwhile, or the recorder has ended.
                pass
            time.sleep(0.5)

    def failures(self):
        print(self.said(), end="")
        # What is saved is kept until it is written.
        allowed = PROGRAM + self.buffer + 2 * self.memory
        parts = ", ".join(f"{name} {mib:.0f}" for name, mib in self.most.items())
        print(f"memory at most, MiB: {parts}; allowed: {allowed}", flush=True)
        if self.recorder.returncode != 0:
            yield f"the recorder ended with {self.recorder.returncode}"
        if not 0 < self.most.get("all", 0) <= allowed:
            yield f"{self.most} MiB of memory instead of {allowed}"

    def ask(self, question):
        command = [self.whyslow, *question, "--json"]
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def memory(pid):
    """In MiB: pages of the process, without those of the kernel's buffers that it looks at (twice, as
    they are mapped); and all that its maps take in the kernel, buffers included."""
    process = pathlib.Path(f"/proc/{pid}")
    own = code = 0
    name = ""
    for line in (process / "smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            name = (line.split(maxsplit=5) + [""])[5]
        elif line.startswith("Rss:") and "bpf" not in name:
            code += int(line.split()[1])
        elif line.startswith("Anonymous:") and "bpf" not in name:
            own += int(line.split()[1])
    kernel, seen = 0, set()
    for about in (process / "fdinfo").iterdir():
        found = dict(re.findall(r"^(\w+):\s+(\d+)$", about.read_text(), re.MULTILINE))
        if "map_id" in found and found["map_id"] not in seen:
            seen.add(found["map_id"])
            kernel += int(found["memlock"])
    parts = {"own": own / 1024, "files": (code - own) / 1024, "kernel": kernel / 1024 / 1024}
    return {"all": sum(parts.values()), **parts}


main()

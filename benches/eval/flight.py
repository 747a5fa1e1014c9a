"""Tests the flight recorder in two scenarios.

Ten minutes of a server's load with one fault at a random time: the recorder saves the complete fault and
the minute before it, loses no records, and stays within its memory limit.

Half a minute of a flood that no recorder keeps up with, with little memory: the saved recording reports
what is missing, and memory stays within its limit.

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
# Per second; about ten thousand records per second.
REQUESTS = 300
RECORDS_MIN = 10_000
FLOOD = "while :; do dd if=/dev/zero of=/dev/null bs=1 count=10000000 2>/dev/null; done"

RING = 60
# Memory of the program itself, including its code.
PROGRAM = 64
# MiB: for the ring, and for kernel buffers.
MEMORY, BUFFER = 64, 16
MEMORY_FLOOD, BUFFER_FLOOD = 16, 1
# Seconds between the fault program's first call and the fault.
BEFORE, BEFORE_FLOOD = 20, 1
FAULT_MS = 700

# Opening a pipe without a writer blocks. The fault uses a rare system call, so that no other program on
# the machine triggers it.
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
    fault_at = random.Random(seed).uniform(seconds * 0.2, seconds * 0.8)
    for name in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(name, lambda number, _: sys.exit(128 + number))
    failures = []
    print(f"server load for {seconds:.0f} s, fault after {fault_at:.0f} s (SEED={seed})", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        failures += of_server(whyslow, pathlib.Path(folder), seconds, fault_at)
    print("flood for 30 s", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        failures += of_flood(whyslow, pathlib.Path(folder))
    for failure in failures:
        print(f"FAILED: {failure}")
    sys.exit(1 if failures else 0)


def of_server(whyslow, folder, seconds, fault_at):
    load = [sys.executable, str(SERVER), ".", str(REQUESTS)]
    with Run(whyslow, folder, load, (MEMORY, BUFFER)) as run:
        time.sleep(fault_at)
        run.fault(BEFORE)
        time.sleep(max(seconds - fault_at - BEFORE, 15))
        run.end()
    yield from run.failures()
    if "lost" in run.messages():
        yield "records were lost"
    records, length = re.search(r"([\d,]+) records in ([\d.]+) s", run.messages()).groups()
    rate = int(records.replace(",", "")) / float(length)
    print(f"{rate:.0f} records per second")
    if rate < RECORDS_MIN:
        yield f"the load made fewer than {RECORDS_MIN} records per second"
    saved = sorted(folder.glob("box-*.wsl"))
    if len(saved) != 1:
        yield f"{len(saved)} recordings instead of one"
    for recording in saved:
        yield from of_fault(run, recording)
    kept = [float(length) for length in re.findall(r"saved .*: ([\d.]+) s", run.messages())]
    if any(length < min(RING, fault_at) for length in kept):
        yield f"kept {kept} s instead of {RING} s"


def of_flood(whyslow, folder):
    with Run(whyslow, folder, ["/bin/sh", "-c", FLOOD], (MEMORY_FLOOD, BUFFER_FLOOD)) as run:
        time.sleep(15)
        run.fault(BEFORE_FLOOD)
        time.sleep(15)
        # A second trigger, in case the flood displaced the fault's own records.
        run.recorder.send_signal(signal.SIGUSR1)
        time.sleep(2)
        run.end()
    yield from run.failures()
    if not re.search(r"note: [1-9][\d,]* records were lost", run.messages()):
        yield "lost records were not reported"
    saved = sorted(folder.glob("box-*.wsl"))
    if not saved:
        yield "no recording was saved"
    for recording in saved:
        answer = run.query(["info", str(recording)])
        if not answer["losses"]:
            yield f"{recording.name} does not report losses"
    if "the memory for kept data was full" not in run.messages():
        yield "the truncated ring was not reported"


def of_fault(run, recording):
    command = ["syscalls", "log", str(recording), "-c", "faulty-7919", "--name", f"{CALL},mkdir"]
    calls = run.query([*command, "-n", "0"])["tables"][0]["rows"]
    opens = [call for call in calls if "pipe-7919" in str(call["path"])]
    if not any((call["dur_ns"] or 0) >= 500_000_000 and call["ret"] is not None for call in opens):
        yield f"the fault is not in {recording.name}: {opens}"
    for name in ("before-7919", "after-7919"):
        if not any(name in str(call["path"]) for call in calls):
            yield f"the mkdir of {name} is not in {recording.name}"


class Run:
    """Runs a recorder and a load; kills both on exit."""

    def __init__(self, whyslow, folder, load, memory):
        self.whyslow, self.folder, self.load = whyslow, folder, load
        self.memory, self.buffer = memory
        self.processes = []
        self.peak = {}

    def __enter__(self):
        os.mkfifo(self.folder / "pipe-7919")
        self.recorder = self.start(
            [self.whyslow, "record", "-o", "box.wsl", "--ring", f"{RING}s", "--after", "3s"]
            + ["--cooldown", "1h", "--ring-memory", f"{self.memory}MiB"]
            + ["--buffer", f"{self.buffer}MiB", "--when", f"{CALL}>500ms"],
            stderr=(self.folder / "messages.txt").open("w"),
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
        """Starts a command in its own process group; the kernel kills it if this process ends."""
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
            raise RuntimeError("the fault failed")

    def release(self):
        with (self.folder / "pipe-7919").open("w"):
            pass

    def end(self):
        self.recorder.send_signal(signal.SIGTERM)
        self.recorder.wait(timeout=300)

    def messages(self):
        return (self.folder / "messages.txt").read_text()

    def watch(self):
        while self.recorder.poll() is None:
            try:
                taken = memory(self.recorder.pid)
                self.peak = max(self.peak, taken, key=lambda taken: taken.get("all", 0))
            except OSError:
                # A descriptor was closed in between, or the recorder has ended.
                pass
            time.sleep(0.5)

    def failures(self):
        print(self.messages(), end="")
        # Saved data stays in memory until it is written.
        allowed = PROGRAM + self.buffer + 2 * self.memory
        parts = ", ".join(f"{name} {mib:.0f}" for name, mib in self.peak.items())
        print(f"peak memory, MiB: {parts}; allowed: {allowed}", flush=True)
        if self.recorder.returncode != 0:
            yield f"the recorder exited with status {self.recorder.returncode}"
        if not 0 < self.peak.get("all", 0) <= allowed:
            yield f"peak memory {self.peak} MiB instead of at most {allowed}"

    def query(self, words):
        command = [self.whyslow, *words, "--json"]
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def memory(pid):
    """MiB of the process's own pages, without mapped kernel buffers (they are mapped twice), and of its
    BPF maps in the kernel, including these buffers."""
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
    for info in (process / "fdinfo").iterdir():
        found = dict(re.findall(r"^(\w+):\s+(\d+)$", info.read_text(), re.MULTILINE))
        if "map_id" in found and found["map_id"] not in seen:
            seen.add(found["map_id"])
            kernel += int(found["memlock"])
    parts = {"own": own / 1024, "files": (code - own) / 1024, "kernel": kernel / 1024 / 1024}
    return {"all": sum(parts.values()), **parts}


main()

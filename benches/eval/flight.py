"""Ten minutes of load with a fault once, at a moment nobody knows: the flight recorder saves it whole,
with what came before, and keeps within its memory.

    python3 benches/eval/flight.py WHYSLOW [SECONDS]
"""

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

RING = 60
RING_MEMORY = 64
BUFFER = 16
# What the program itself takes, its code included.
PROGRAM = 48
# What is saved is kept until it is written.
RSS_MAX = PROGRAM + BUFFER + 2 * RING_MEMORY
FAULT_MS = 700

LOAD = """
while :; do
    dd if=/dev/zero of=load bs=4k count=400 conv=fsync 2>/dev/null
    cat load >/dev/null; ls -lR /usr/share >/dev/null; rm load
done
"""

# A pipe that nobody writes to holds up who opens it.
FAULT = """
import os, sys, time
open('/proc/self/comm', 'w').write('faulty-7919')
os.mkdir('before-7919')
time.sleep(20)
os.close(os.open('pipe-7919', os.O_RDONLY))
os.mkdir('after-7919')
"""


def main():
    whyslow = str(pathlib.Path(sys.argv[1]).resolve())
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 600.0
    seed = int(os.environ.get("SEED", time.time_ns() % 1_000_000))
    moment = random.Random(seed).uniform(seconds * 0.2, seconds * 0.8)
    print(f"{seconds:.0f} s of load, a fault after {moment:.0f} s (SEED={seed})")
    with tempfile.TemporaryDirectory() as folder:
        failures = run(whyslow, pathlib.Path(folder), seconds, moment)
    for failure in failures:
        print(f"FAILED: {failure}")
    sys.exit(1 if failures else 0)


def run(whyslow, folder, seconds, moment):
    os.mkfifo(folder / "pipe-7919")
    said = folder / "said.txt"
    recorder = subprocess.Popen(
        [whyslow, "record", "-o", "box.wsl", "--ring", f"{RING}s", "--after", "3s", "--cooldown", "1h"]
        + ["--ring-memory", f"{RING_MEMORY}MiB", "--buffer", f"{BUFFER}MiB", "--when", "openat>500ms"],
        cwd=folder,
        stderr=said.open("w"),
    )
    load = subprocess.Popen(["/bin/sh", "-c", LOAD], cwd=folder, start_new_session=True)
    fault = None
    try:
        time.sleep(moment)
        fault = subprocess.Popen([sys.executable, "-c", FAULT], cwd=folder)
        time.sleep(20 + FAULT_MS / 1000)
        writer = threading.Thread(target=release, args=(folder,), daemon=True)
        writer.start()
        fault.wait(timeout=60)
        time.sleep(max(seconds - moment - 21, 15))
        rss = memory(recorder.pid)
        recorder.send_signal(signal.SIGTERM)
        recorder.wait(timeout=300)
    finally:
        os.killpg(load.pid, signal.SIGKILL)
        for process in (recorder, load, fault):
            if process is not None:
                process.kill()
                process.wait()
    print(said.read_text(), end="")
    print(f"memory of the recorder at most: {rss} MiB (allowed: {RSS_MAX} MiB)")
    return list(failures(whyslow, folder, said.read_text(), rss))


def release(folder):
    with (folder / "pipe-7919").open("w"):
        pass


def memory(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) // 1024


def failures(whyslow, folder, said, rss):
    if rss > RSS_MAX:
        yield f"{rss} MiB of memory are more than {RSS_MAX}"
    saved = sorted(folder.glob("box-*.wsl"))
    if len(saved) != 1:
        yield f"{len(saved)} recordings instead of one"
    for recording in saved:
        calls = log(whyslow, recording, ["-c", "faulty-7919", "--name", "openat,mkdir"])
        opens = [call for call in calls if "pipe-7919" in str(call["path"])]
        if not any((call["dur_ns"] or 0) >= 500_000_000 and call["ret"] is not None for call in opens):
            yield f"the fault is not in {recording.name}: {opens}"
        for name in ("before-7919", "after-7919"):
            if not any(name in str(call["path"]) for call in calls):
                yield f"what was done ({name}) is not in {recording.name}"
    if "lost" in said:
        yield "records were lost"


def log(whyslow, recording, options):
    command = [whyslow, "syscalls", "log", str(recording), *options, "--json", "-n", "0"]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return answer["tables"][0]["rows"]


main()

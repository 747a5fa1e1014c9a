"""Undoes a workload's changes to the machine: at its end, when it dies, or when it takes too long.

    python3 watchdog.py LIST RUNNER_PID SECONDS

Runs as a process in its own session, so that it does not receive signals for the workload. The
list has one JSON array per line, written before the setup that it names:

    ["folder", PATH]            contains everything else
    ["control", PATH]           control file of a slow file system
    ["mount", PATH]
    ["loop", BACKING_FILE]      the loop device of this file
    ["cgroup", PATH]
    ["process", PID, START]     start in ticks since boot, because pids are reused
    ["group", PID, START]       the same, with its process group
    ["controller", FILE, NAME]  enabled for the children of a cgroup
    ["setting", FILE, TEXT]     the previous value
    ["netns", NAME]             with its interfaces and rules
    ["frozen", PATH]            a mounted file system that may be frozen
    ["swap", DEVICE]            a zram device, which is reset, too

Only what the list names is touched.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

# Offset of `calm` in a control file, see slowfs.c.
CALM_AT = 9 * 8
PATIENCE_SECONDS = 20


def start_of(pid: int) -> int | None:
    """Start time of a process; None if it does not exist or is a zombie."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if words[0] in "ZX" else int(words[19])


def loops_of(backing: str) -> list[str]:
    found = []
    for file in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            if file.read_text().strip() == backing:
                found.append(f"/dev/{file.parent.parent.name}")
        except OSError:  # removed in between
            continue
    return found


def is_mounted(path: str) -> bool:
    return any(
        line.split()[1] == path for line in Path("/proc/self/mounts").read_text().splitlines()
    )


def calls(*command: str) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def calm(path: str) -> None:
    try:
        with open(path, "r+b", buffering=0) as file:
            os.pwrite(file.fileno(), struct.pack("=Q", 1), CALM_AT)
    except OSError:
        pass


def is_undone(entry: list) -> bool:
    """Undoes one entry; false if it has to be retried."""
    kind, name, *rest = entry
    if kind in ("process", "group"):
        if start_of(name) != rest[0]:
            return True
        kill = os.kill if kind == "process" else os.killpg
        kill(name, signal.SIGKILL)
        return False
    if kind == "mount":
        if is_mounted(name):
            calls("umount", name)
        return not is_mounted(name)
    if kind == "loop":
        for device in loops_of(name):
            calls("losetup", "-d", device)
        return not loops_of(name)
    if kind == "cgroup":
        # Fails while the cgroup has processes.
        if os.path.isdir(name):
            os.rmdir(name)
    elif kind == "controller":
        Path(name).write_text(f"-{rest[0]}")
    elif kind == "setting":
        if os.path.exists(name):
            Path(name).write_text(rest[0])
    elif kind == "frozen":
        # Fails if it is not frozen.
        calls("fsfreeze", "-u", name)
    elif kind == "netns":
        if os.path.exists(f"/run/netns/{name}"):
            calls("ip", "netns", "del", name)
        return not os.path.exists(f"/run/netns/{name}")
    elif kind == "swap":
        if name in Path("/proc/swaps").read_text():
            calls("swapoff", name)
        Path(f"/sys/block/{name.rpartition('/')[2]}/reset").write_text("1")
    elif kind == "folder":
        shutil.rmtree(name, ignore_errors=True)
    return True


def undo(entries: list[list]) -> list[list]:
    """Undoes all entries, latest first; the entries that could not be undone."""
    for entry in entries:
        if entry[0] == "control":
            calm(entry[1])
    left = []
    for entry in reversed(entries):
        # Do not delete a file system that is still mounted below the folder.
        if entry[0] == "folder" and any(kept[0] in ("mount", "loop") for kept in left):
            left.append(entry)
            continue
        deadline = time.monotonic() + PATIENCE_SECONDS
        done = False
        while not done and time.monotonic() < deadline:
            try:
                done = is_undone(entry)
            except OSError:
                done = False
            if not done:
                time.sleep(0.05)
        if not done:
            left.append(entry)
            if entry[0] == "mount":
                calls("umount", "-l", entry[1])
    return left


def entries_of(path: str) -> list[list]:
    lines = Path(path).read_text().splitlines()
    # The last line is incomplete if its writer was killed before the setup.
    return [json.loads(line) for line in lines if line.endswith("]")]


def main() -> int:
    list_path, runner, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    deadline = time.monotonic() + seconds
    while os.getppid() == runner and time.monotonic() < deadline:
        if select.select([sys.stdin], [], [], 0.1)[0]:
            break
    if time.monotonic() >= deadline and os.getppid() == runner:
        print(f"watchdog: the workload exceeds {seconds} s, killing it", file=sys.stderr)
        os.kill(runner, signal.SIGKILL)
    left = undo(entries_of(list_path))
    for entry in left:
        print(f"watchdog: failed to undo {entry}", file=sys.stderr)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())

"""Undoes what a workload did to the machine: at its end, when it dies, or when it takes too long.

    python3 watchdog.py LIST RUNNER_PID SECONDS

A process and session of its own, so that no signal meant for the workload reaches it. The list
has a JSON array a line, written before the thing it names is made:

    ["folder", PATH]            everything else is below it
    ["control", PATH]           a slow file system is told by it
    ["mount", PATH]
    ["loop", BACKING_FILE]      whichever loop device has it
    ["cgroup", PATH]
    ["process", PID, START]     ticks since boot, as ids of processes are used again
    ["group", PID, START]       the same, with all of the process group that it leads
    ["controller", FILE, NAME]  was turned on for the children of a cgroup
    ["setting", FILE, TEXT]     what it said before
    ["netns", NAME]             with the interfaces and rules in it
    ["swap", DEVICE]            a compressed one in memory, which is emptied, too

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

# The last of the numbers in a control file, see slowfs.c.
CALM_AT = 9 * 8
PATIENCE_SECONDS = 20


def start_of(pid: int) -> int | None:
    """When a process started; none if there is no such process, or only its remains."""
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
        except OSError:  # it goes away while we look
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
    """Undoes one thing; false if it has to be tried again."""
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
        # A group that has processes left is not empty yet.
        if os.path.isdir(name):
            os.rmdir(name)
    elif kind == "controller":
        Path(name).write_text(f"-{rest[0]}")
    elif kind == "setting":
        if os.path.exists(name):
            Path(name).write_text(rest[0])
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
    """Undoes everything, the latest first; what could not be undone."""
    for entry in entries:
        if entry[0] == "control":
            calm(entry[1])
    left = []
    for entry in reversed(entries):
        # A file system that is mounted below a folder must not be deleted.
        if entry[0] == "folder" and any(kept[0] in ("mount", "loop") for kept in left):
            left.append(entry)
            continue
        give_up = time.monotonic() + PATIENCE_SECONDS
        done = False
        while not done and time.monotonic() < give_up:
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
    # The last line is half there if its writer was killed; then what it names was not made.
    return [json.loads(line) for line in lines if line.endswith("]")]


def main() -> int:
    list_path, runner, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    give_up = time.monotonic() + seconds
    while os.getppid() == runner and time.monotonic() < give_up:
        if select.select([sys.stdin], [], [], 0.1)[0]:
            break
    if time.monotonic() >= give_up and os.getppid() == runner:
        print(f"watchdog: the workload takes longer than {seconds} s", file=sys.stderr)
        os.kill(runner, signal.SIGKILL)
    left = undo(entries_of(list_path))
    for entry in left:
        print(f"watchdog: failed to undo {entry}", file=sys.stderr)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())

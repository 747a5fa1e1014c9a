"""Shared by the workloads: slow disks, actors, and cleanup."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any, Callable

import watchdog

HERE = Path(__file__).resolve().parent
PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
# Fields of a control file, see slowfs.c.
FIELDS = [
    "read_us",
    "write_us",
    "fsync_us",
    "slow_us",
    "slow_every",
    "reads",
    "writes",
    "fsyncs",
    "slow",
    "calm",
    "mib_us",
]
LIBC = ctypes.CDLL(None, use_errno=True)


class UnavailableError(Exception):
    """This machine cannot run the workload."""


def name_thread(name: str) -> None:
    """Names the calling thread; the kernel keeps 15 bytes."""
    LIBC.prctl(PR_SET_NAME, name.encode(), 0, 0, 0)


def next_prime(number: int) -> int:
    """The smallest prime not less than `number`: a count that no other program has by chance."""
    while number < 2 or any(number % factor == 0 for factor in range(2, int(number**0.5) + 1)):
        number += 1
    return number


def needs(*programs: str) -> None:
    if os.geteuid() != 0:
        raise UnavailableError("creating devices and cgroups needs root")
    for program in programs:
        if shutil.which(program) is None:
            raise UnavailableError(f"`{program}` is not installed")


def run(*command: str | Path) -> str:
    """Runs a command that must succeed; its standard output."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UnavailableError(f"`{' '.join(words)}` failed: {done.stderr.strip()}")
    return done.stdout.strip()


class Disk:
    """A loop device over a slow file."""

    def __init__(self, device: str, control: Path) -> None:
        self.device = device
        self.name = device.rpartition("/")[2]
        number = os.stat(device).st_rdev
        self.number = f"{os.major(number)}:{os.minor(number)}"
        self._control = control

    def set(self, **fields: int) -> None:
        with open(self._control, "r+b", buffering=0) as file:
            for name, value in fields.items():
                os.pwrite(file.fileno(), struct.pack("=Q", value), 8 * FIELDS.index(name))

    def state(self) -> dict[str, int]:
        """Settings and counters."""
        return dict(zip(FIELDS, struct.unpack(f"={len(FIELDS)}Q", self._control.read_bytes())))


class Actor:
    """A child process that performs an action and reports a result."""

    def __init__(
        self, name: str, pid: int, pipe: int, child: subprocess.Popen[bytes] | None = None
    ) -> None:
        self.name = name
        self.pid = pid
        self._pipe = pipe
        self._child = child

    def result(self) -> Any:
        """Waits for the process to end; its result."""
        with open(self._pipe, encoding="utf-8") as pipe:
            text = pipe.read()
        status = self._child.wait() if self._child else os.waitpid(self.pid, 0)[1]
        if status != 0 or not text:
            raise RuntimeError(f"{self.name} exited with status {status}")
        return json.loads(text)


class Lab:
    """A temporary folder and all setup; a watchdog undoes it, even if this process is killed."""

    def __init__(self, seconds_max: float) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="whyslow-lab-"))
        self._list = self.folder / "undo.jsonl"
        self._list.touch()
        self.will_undo("folder", str(self.folder))
        words = [sys.executable, HERE / "watchdog.py", self._list, os.getpid(), seconds_max]
        self._watchdog = subprocess.Popen(
            [str(word) for word in words],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
        self._slowfs: Path | None = None
        self._disks = 0

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.write(b"done\n")
        self._watchdog.stdin.close()
        if self._watchdog.wait() != 0:
            print(f"warning: cleanup of {self.folder} is incomplete", file=sys.stderr)

    def will_undo(self, *entry: object) -> None:
        """Registers an entry for cleanup; call this before the setup."""
        with open(self._list, "a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def disk(self, mib: int, *kind: str) -> Disk:
        """A disk of `mib` MiB, as fast as memory until delays are set.

        One of the kind `serial` handles one request at a time.
        """
        needs("losetup", "cc", "pkg-config")
        self._disks += 1
        folder = self.folder / f"slow{self._disks}"
        folder.mkdir()
        control = self.folder / f"control{self._disks}"
        control.write_bytes(bytes(8 * len(FIELDS)))
        self.will_undo("control", str(control))
        self.will_undo("mount", str(folder))
        size = str(mib << 20)
        with open(self.folder / "slowfs.log", "ab") as log:
            daemon = subprocess.Popen(
                [str(self._compiled()), str(control), size, str(folder), *kind],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd="/",
            )
        backing = folder / "disk"
        deadline = time.monotonic() + 20
        while not backing.exists():
            if daemon.poll() is not None or time.monotonic() > deadline:
                output = (self.folder / "slowfs.log").read_text(errors="replace").strip()
                raise UnavailableError(f"cannot mount a FUSE file system: {output}")
            time.sleep(0.02)
        self.will_undo("loop", str(backing))
        device = run("losetup", "--direct-io=on", "--find", "--show", backing)
        disk = Disk(device, control)
        self._reset_limits(disk)
        return disk

    def _reset_limits(self, disk: Disk) -> None:
        """Resets dirty page limits, which outlive the loop device that they were set for."""
        folder = Path(f"/sys/class/bdi/{disk.number}")
        for name, usual in (("strict_limit", "0"), ("max_ratio", "100")):
            setting = folder / name
            if setting.exists() and setting.read_text().strip() != usual:
                setting.write_text(usual)

    def mount(self, disk: Disk, kind: str, *options: str) -> Path:
        """Creates a file system on a disk and mounts it."""
        needs(f"mkfs.{kind}", "mount")
        run(f"mkfs.{kind}", "-q", *options, disk.device)
        folder = self.folder / kind
        folder.mkdir()
        self.will_undo("mount", str(folder))
        run("mount", "-t", kind, disk.device, folder)
        return folder

    def run(self, *command: str | Path) -> str:
        """Runs a load that must succeed, in its own process group; its standard output."""
        words = [str(word) for word in command]
        child = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        start = watchdog.start_of(child.pid)
        if start is not None:
            self.will_undo("group", child.pid, start)
        output, errors = child.communicate()
        if child.returncode != 0:
            raise UnavailableError(f"`{words[0]}` failed: {errors.strip()[-400:]}")
        return output

    def start_program(self, name: str, command: list[str]) -> Actor:
        """Starts a program that prints its result as JSON."""
        read_end, write_end = os.pipe()
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=write_end)
        os.close(write_end)
        start = watchdog.start_of(child.pid)
        if start is not None:
            self.will_undo("process", child.pid, start)
        return Actor(name, child.pid, read_end, child)

    def start(self, name: str, act: Callable[..., Any], *arguments: Any) -> Actor:
        """Starts a process named `name` that calls a function and reports its return value."""
        sys.stdout.flush()
        sys.stderr.flush()
        runner = os.getpid()
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read_end)
            status = 1
            try:
                LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
                if os.getppid() != runner:
                    os._exit(1)
                name_thread(name)
                result = act(*arguments)
                with open(write_end, "w", encoding="utf-8") as pipe:
                    json.dump(result, pipe)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        os.close(write_end)
        start = watchdog.start_of(pid)
        if start is not None:
            self.will_undo("process", pid, start)
        return Actor(name, pid, read_end)

    def _compiled(self) -> Path:
        if self._slowfs is None:
            try:
                flags = run("pkg-config", "--cflags", "--libs", "fuse3").split()
            except UnavailableError as error:
                raise UnavailableError("libfuse3-dev is not installed") from error
            if not os.path.exists("/dev/fuse"):
                raise UnavailableError("/dev/fuse does not exist")
            binary = self.folder / "slowfs"
            run("cc", "-O2", "-o", binary, HERE / "slowfs.c", *flags)
            self._slowfs = binary
        return self._slowfs
